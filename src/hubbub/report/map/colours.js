// Colours for counts, their scale and its legend. From almost the paper to far from it, so that grey rises too.
const LIGHT = [[246, 247, 249], [198, 219, 232], [116, 174, 206], [48, 120, 173], [20, 70, 124], [8, 30, 66]];
const DARK = [[29, 35, 42], [26, 58, 92], [26, 100, 142], [58, 156, 170], [150, 206, 158], [250, 243, 160]];
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const SHADES = 256;

function shades() {
  const stops = dark.matches ? DARK : LIGHT, found = new Uint8ClampedArray(3 * SHADES);
  for (let place = 0; place < SHADES; place++) {
    const at = place / (SHADES - 1) * (stops.length - 1), low = Math.min(stops.length - 2, Math.floor(at));
    for (let part = 0; part < 3; part++) {
      found[3 * place + part] = stops[low][part] + (stops[low + 1][part] - stops[low][part]) * (at - low);
    }
  }
  return found;
}

let ramp = shades();
const scale = { name: "even", top: 1, middle: 1 };

function share(value) { // between 0 and 1
  if (!(value > 0)) return 0;
  const inside = Math.min(1, value / scale.top);
  if (scale.name === "root") return Math.sqrt(inside);
  if (scale.name === "log") return Math.log1p(inside * scale.top / scale.middle) / Math.log1p(scale.top / scale.middle);
  return inside;
}

function back(part) { // the value of a share
  if (scale.name === "root") return scale.top * part * part;
  if (scale.name === "log") return scale.middle * Math.expm1(part * Math.log1p(scale.top / scale.middle));
  return scale.top * part;
}

const shadeOf = (value) => 3 * Math.round(share(value) * (SHADES - 1));
const colour = (value) => { const at = shadeOf(value); return `rgb(${ramp[at]},${ramp[at + 1]},${ramp[at + 2]})`; };
const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function fitScale(values) { // by how far the largest is above the mean of what is above zero
  const above = Array.from(values).filter((value) => value > 0).sort((one, two) => one - two);
  scale.top = above.length ? above[above.length - 1] : 1;
  scale.middle = above.length ? above[above.length >> 1] : 1;
}

function number(value) {
  const size = Math.abs(value);
  const digits = Number.isInteger(value) || size >= 1000 ? 0 : size >= 10 ? 1 : 2;
  return value.toLocaleString("en", { maximumFractionDigits: digits }).replace("-", "−");
}

function rounded(value) { // for ticks: two digits
  return Number(value.toPrecision(2)).toLocaleString("en", { maximumFractionDigits: 6 });
}

function withError(value, margin) {
  if (margin === null) return number(value);
  return `${number(value)} (${number(value - margin)} … ${number(value + margin)}, ${told.confidence})`;
}

function legend(unit) {
  const bar = find("ramp"), drawing = bar.getContext("2d");
  for (let place = 0; place < bar.width; place++) {
    drawing.fillStyle = colour(back(place / (bar.width - 1)));
    drawing.fillRect(place, 0, 1, bar.height);
  }
  const ticks = [0, 0.33, 0.67, 1].map((part) => {
    const mark = document.createElement("span");
    mark.style.left = `${100 * part}%`;
    mark.textContent = part ? rounded(back(part)) : "0 or less";
    return mark;
  });
  find("ticks").replaceChildren(...ticks);
  bar.setAttribute("aria-label", `Colours from 0 or less to ${rounded(scale.top)}`);
  find("unit").textContent = unit;
}
