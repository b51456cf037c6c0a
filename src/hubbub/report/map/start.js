// What a person touches: pointer, wheel, keys, buttons, the slider and the choices.
const model = told.kind === "cells" ? cellMap() : flowMap();
const DRAGGED = 4, PACE = 700, ROWS = 20;
let cursor = -1, dragged = false;
const fingers = new Map();

function draw() {
  const inkNow = ink("--ink"), sea = ink("--sea");
  pen.fillStyle = sea;
  pen.fillRect(0, 0, view.wide, view.high);
  model.paint(inkNow);
  drawLines(inkNow);
  frame(inkNow, sea);
  if (cursor >= 0 && cursor < model.count) {
    const [left, top, wide, high] = model.box(cursor);
    pen.lineWidth = 4;
    pen.strokeStyle = sea;
    pen.strokeRect(left, top, wide, high);
    pen.lineWidth = 2;
    pen.strokeStyle = ink("--accent");
    pen.strokeRect(left, top, wide, high);
  }
}

function read(zone) {
  cursor = zone;
  find("reading").textContent = zone < 0 ? "Point at the map to read it." : model.describe(zone);
  redraw();
}

function refresh() { // after a choice that changes colours
  model.scaled();
  model.repaint();
  legend(model.unit());
  if (cursor >= model.count) cursor = -1;
  read(cursor);
  table();
}

function table() {
  const [heads, places, cells] = model.largest();
  const order = []; // one pass: there may be a million
  for (const at of places) {
    if (order.length === ROWS && model.value(at) <= model.value(order[ROWS - 1])) continue;
    let place = order.length;
    while (place && model.value(at) > model.value(order[place - 1])) place--;
    order.splice(place, 0, at);
    order.length = Math.min(order.length, ROWS);
  }
  const row = (parts, kind) => {
    const made = document.createElement("tr");
    made.append(...parts.map((words) => Object.assign(document.createElement(kind), { textContent: words })));
    return made;
  };
  find("largest-title").textContent = `The ${order.length} largest, as a table`;
  find("largest").replaceChildren(row([...heads, "count"], "th"),
    ...order.map((at) => row([...cells(at), withError(model.value(at), model.margin(at))], "td")));
}

const spot = (event) => {
  const box = canvas.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
};

canvas.addEventListener("pointerdown", (event) => {
  canvas.setPointerCapture(event.pointerId);
  fingers.set(event.pointerId, spot(event));
  if (fingers.size === 1) dragged = false;
});
canvas.addEventListener("pointermove", (event) => {
  const now = spot(event), before = fingers.get(event.pointerId);
  if (!before) return read(model.at(xAt(now[0]), yAt(now[1])));
  if (fingers.size === 1) {
    if (!dragged && Math.hypot(now[0] - before[0], now[1] - before[1]) <= DRAGGED) return;
    dragged = true;
    canvas.classList.add("dragged");
    pan(now[0] - before[0], now[1] - before[1]);
  } else {
    const [other] = [...fingers].filter(([name]) => name !== event.pointerId).map(([, place]) => place);
    const far = (one) => Math.hypot(one[0] - other[0], one[1] - other[1]);
    dragged = true;
    zoom(far(now) / Math.max(1, far(before)), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
  }
  fingers.set(event.pointerId, now);
});
const lifted = (event) => {
  const [px, py] = spot(event);
  if (event.type === "pointerup" && fingers.size === 1 && !dragged) {
    model.choose(xAt(px), yAt(py));
    if (told.kind === "flows") refresh();
    read(model.at(xAt(px), yAt(py)));
  }
  fingers.delete(event.pointerId);
  canvas.classList.remove("dragged");
};
canvas.addEventListener("pointerup", lifted);
canvas.addEventListener("pointercancel", lifted);
canvas.addEventListener("pointerleave", () => { if (!fingers.size && document.activeElement !== canvas) read(-1); });
canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0016)), ...spot(event));
}, { passive: false });

const ARROW_KEYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
canvas.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const way = ARROW_KEYS[event.key];
  if (way && event.shiftKey) pan(-60 * way[0], 60 * way[1]);
  else if (way) step(...way);
  else if (event.key === "+" || event.key === "=") zoom(1.5);
  else if (event.key === "-") zoom(1 / 1.5);
  else if (event.key === "0") { fit(); redraw(); }
  else if ((event.key === "Enter" || event.key === " ") && cursor >= 0) {
    model.choose(...model.middle(cursor));
    refresh();
  } else return;
  event.preventDefault();
});

function step(right, up) {
  const next = cursor < 0 ? Math.max(0, model.at(view.x, view.y)) : model.beside(cursor, right, up);
  const [x, y] = model.middle(next), px = across(x), py = down(y);
  if (px < 0 || py < 0 || px > view.wide || py > view.high) { view.x = x; view.y = y; }
  read(next);
}

canvas.addEventListener("focus", () => {
  if (canvas.matches(":focus-visible") && cursor < 0) read(model.at(view.x, view.y));
});
find("in").addEventListener("click", () => zoom(1.6));
find("out").addEventListener("click", () => zoom(1 / 1.6));
find("all").addEventListener("click", () => { fit(); redraw(); });
find("scale").addEventListener("change", (event) => { scale.name = event.target.value; refresh(); });
dark.addEventListener("change", () => { ramp = shades(); refresh(); });

function slider() {
  const bar = find("moment"), play = find("play");
  let clock = null;
  const show = (place) => {
    bar.value = place;
    bar.setAttribute("aria-valuetext", told.moments[place]);
    find("moment-name").textContent = told.moments[place];
    model.move(place);
    refresh();
  };
  const stop = () => {
    clearInterval(clock);
    clock = null;
    play.textContent = "Play";
    play.setAttribute("aria-pressed", "false");
  };
  find("moving").hidden = false;
  find("moment-label").textContent = told.movedBy;
  bar.max = told.moments.length - 1;
  bar.addEventListener("input", () => { stop(); show(Number(bar.value)); });
  play.addEventListener("click", () => {
    if (clock !== null) return stop();
    play.textContent = "Pause";
    play.setAttribute("aria-pressed", "true");
    clock = setInterval(() => show((Number(bar.value) + 1) % told.moments.length), PACE);
  });
  show(model.busiest());
}

function choices() {
  const select = find("direction");
  find("flowing").hidden = find("help-flows").hidden = false;
  for (const [name, words] of [
    ["to", `by ${model.sides.to.name}: where do they come from?`],
    ["from", `by ${model.sides.from.name}: where do they go?`],
  ]) select.append(Object.assign(document.createElement("option"), { value: name, textContent: words }));
  select.addEventListener("change", () => { model.direct(select.value); refresh(); });
  find("arrows").addEventListener("change", (event) => { model.showArrows(event.target.checked); redraw(); });
  find("none").addEventListener("click", () => { model.none(); refresh(); });
}

find("title").textContent = told.title;
find("source").textContent = `Noisy counts: ${told.source}.`;
find("claim").textContent = `What it costs: ${told.claim} ` + (told.why ? `There are no intervals: ${told.why}`
  : `Intervals hold for one cell at a time, at ${told.confidence}.`);
canvas.setAttribute("aria-label", `${told.title}: ${told.kind === "cells" ? "a map of counts" : "a map of flows"}, ` +
  `${told.x} from ${told.bounds[0]} to ${told.bounds[2]}, ${told.y} from ${told.bounds[1]} to ${told.bounds[3]}`);
scale.name = find("scale").value = told.scale || "root";
new ResizeObserver(resized).observe(canvas);
resized();
refresh();
if (told.kind === "flows") choices();
else if (told.movedBy !== null) slider();
