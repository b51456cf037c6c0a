// The window onto the plane: where places are on the screen, and how a person moves.
const find = (name) => document.getElementById(name);
const told = JSON.parse(find("numbers").textContent);
const canvas = find("map"), pen = canvas.getContext("2d");
const MARGIN = 0.96, FARTHEST = 0.5, CLOSEST = 4000;

function unpack(packed) {
  const text = atob(packed.data), bytes = new Uint8Array(text.length);
  for (let place = 0; place < text.length; place++) bytes[place] = text.charCodeAt(place);
  return packed.kind === "i" ? new Int32Array(bytes.buffer) : new Float32Array(bytes.buffer);
}

function each(packed) { // margins: none, one for all, or one for each
  if (packed === null) return () => null;
  if (typeof packed === "number") return () => packed;
  const found = unpack(packed);
  return (place) => found[place];
}

const view = { x: 0, y: 0, scale: 1, least: 1, wide: 1, high: 1 };
const across = (x) => (x - view.x) * view.scale + view.wide / 2;
const down = (y) => view.high / 2 - (y - view.y) * view.scale * told.aspect;
const xAt = (px) => (px - view.wide / 2) / view.scale + view.x;
const yAt = (py) => (view.high / 2 - py) / (view.scale * told.aspect) + view.y;

function fit() {
  const [west, south, east, north] = told.bounds;
  view.x = (west + east) / 2;
  view.y = (south + north) / 2;
  view.scale = view.least = MARGIN * Math.min(view.wide / (east - west), view.high / ((north - south) * told.aspect));
}

function kept() { // the middle of the window stays on the map
  const [west, south, east, north] = told.bounds;
  view.x = Math.min(east, Math.max(west, view.x));
  view.y = Math.min(north, Math.max(south, view.y));
}

function zoom(times, px = view.wide / 2, py = view.high / 2) {
  const x = xAt(px), y = yAt(py);
  view.scale = Math.min(view.least * CLOSEST, Math.max(view.least * FARTHEST, view.scale * times));
  view.x += x - xAt(px);
  view.y += y - yAt(py);
  kept();
  redraw();
}

function pan(px, py) {
  view.x -= px / view.scale;
  view.y += py / (view.scale * told.aspect);
  kept();
  redraw();
}

let waiting = false;
function redraw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; draw(); });
}

function resized() {
  const box = canvas.getBoundingClientRect(), dots = window.devicePixelRatio || 1, first = view.wide === 1;
  const before = view.least;
  canvas.width = Math.max(1, Math.round(box.width * dots));
  canvas.height = Math.max(1, Math.round(box.height * dots));
  view.wide = box.width;
  view.high = box.height;
  pen.setTransform(dots, 0, 0, dots, 0, 0);
  const { x, y, scale } = view;
  fit();
  if (!first) Object.assign(view, { x, y, scale: scale / before * view.least });
  redraw();
}

function steps(low, high, most) { // round numbers between two ends
  const rough = (high - low) / most, ten = 10 ** Math.floor(Math.log10(rough));
  const step = ten * [1, 2, 5, 10].find((times) => ten * times >= rough), found = [];
  for (let at = Math.ceil(low / step); at * step <= high; at++) found.push(Number((at * step).toPrecision(12)));
  return found;
}

function frame(ink, paper) { // lines of equal x and y, with their numbers at the edges
  pen.lineWidth = 1;
  pen.strokeStyle = ink;
  pen.globalAlpha = 0.18;
  pen.beginPath();
  const xs = steps(xAt(0), xAt(view.wide), view.wide / 130), ys = steps(yAt(view.high), yAt(0), view.high / 90);
  for (const x of xs) { pen.moveTo(across(x), 0); pen.lineTo(across(x), view.high); }
  for (const y of ys) { pen.moveTo(0, down(y)); pen.lineTo(view.wide, down(y)); }
  pen.stroke();
  pen.globalAlpha = 1;
  pen.font = "11px system-ui, sans-serif";
  pen.textBaseline = "alphabetic";
  const text = (words, x, y) => {
    pen.lineWidth = 3; pen.strokeStyle = paper; pen.strokeText(words, x, y); pen.fillStyle = ink; pen.fillText(words, x, y);
  };
  pen.textAlign = "center";
  for (const x of xs) if (across(x) > 50 && across(x) < view.wide - 20) text(String(x), across(x), view.high - 6);
  pen.textAlign = "left";
  for (const y of ys) if (down(y) > 12 && down(y) < view.high - 20) text(String(y), 5, down(y) - 3);
}

function drawLines(ink) { // the outlines that were handed in
  if (!told.lines.length) return;
  pen.strokeStyle = ink;
  pen.lineWidth = 1.3;
  pen.globalAlpha = 0.75;
  pen.beginPath();
  for (const line of told.lines) {
    for (let place = 0; place < line.length; place += 2) {
      pen[place ? "lineTo" : "moveTo"](across(line[place]), down(line[place + 1]));
    }
  }
  pen.stroke();
  pen.globalAlpha = 1;
}
