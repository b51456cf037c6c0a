// Flows between zones: choose one, and see where those come from who go there, or go to who come from there.
const ARROWS = 12;

function flowMap() {
  const counts = unpack(told.counts), margin = each(told.margins);
  const sides = { from: told.origins, to: told.destinations }, wide = told.destinations.shapes.length;
  const totals = { from: new Float64Array(told.origins.shapes.length), to: new Float64Array(wide) };
  for (let place = 0; place < counts.length; place++) {
    totals.from[Math.floor(place / wide)] += counts[place];
    totals.to[place % wide] += counts[place];
  }
  const totalMargin = { from: each(told.leaving), to: each(told.arriving) };
  let choosing = "to", chosen = told.chosen === null ? -1 : told.chosen, arrows = true;
  const other = () => (choosing === "to" ? "from" : "to");
  const painted = () => sides[chosen < 0 ? choosing : other()];
  const place = (zone) => (choosing === "to" ? zone * wide + chosen : chosen * wide + zone);
  const value = (zone) => (chosen < 0 ? totals[choosing][zone] : counts[place(zone)]);
  const values = () => Array.from({ length: painted().shapes.length }, (_, zone) => value(zone));
  const middle = (side, zone) => {
    const shape = side.shapes[zone];
    return side.points ? shape : [(shape[0] + shape[2]) / 2, (shape[1] + shape[3]) / 2];
  };
  const radius = (one) => 4 + 22 * Math.sqrt(Math.max(0, one) / scale.top);

  function boxOf(side, zone, one) {
    const shape = side.shapes[zone];
    if (side.points) {
      const far = radius(one);
      return [across(shape[0]) - far, down(shape[1]) - far, 2 * far, 2 * far];
    }
    const left = across(shape[0]), top = down(shape[3]);
    return [left, top, across(shape[2]) - left, down(shape[1]) - top];
  }

  function named(side, zone) {
    if (side.names) return side.names[zone];
    const short = (one) => Number(one.toPrecision(6)), shape = side.shapes[zone];
    return `${short(shape[0])} to ${short(shape[2])}, ${short(shape[1])} to ${short(shape[3])}`;
  }

  function touching(side, start, end) { // of rectangles even corners; a point touches itself alone
    const one = side.shapes[start], two = sides.to.shapes[end], room = 1e-9 * Math.abs(told.bounds[2] - told.bounds[0]);
    if (side.points) return one[0] === two[0] && one[1] === two[1];
    return one[0] <= two[2] + room && two[0] <= one[2] + room && one[1] <= two[3] + room && two[1] <= one[3] + room;
  }

  function largest(most) { // flows between places that do not touch; none that could be noise alone, where that is known
    const found = [];
    for (let at = 0; at < counts.length; at++) {
      const start = Math.floor(at / wide), end = at % wide, around = margin(at);
      if (chosen >= 0 && (choosing === "to" ? end : start) !== chosen) continue;
      if (counts[at] <= (around === null ? 0 : around)) continue;
      if (touching(sides.from, start, end)) continue;
      found.push(at);
    }
    return found.sort((one, two) => counts[two] - counts[one]).slice(0, most);
  }

  function short(start, end, zone) { // so that heads stand around a place instead of on top of each other
    const [, , wide_, high] = boxOf(sides.to, zone, value(chosen < 0 ? zone : 0));
    const far = Math.hypot(end[0] - start[0], end[1] - start[1]), off = Math.min(0.4 * Math.min(wide_, high), 22, far / 3);
    return [end[0] - (end[0] - start[0]) * off / far, end[1] - (end[1] - start[1]) * off / far];
  }

  function drawArrows() {
    const shown = largest(ARROWS), most = shown.length ? counts[shown[0]] : 1;
    pen.strokeStyle = pen.fillStyle = ink("--accent");
    for (const at of shown.reverse()) {
      const [x0, y0] = middle(sides.from, Math.floor(at / wide)), [x2, y2] = middle(sides.to, at % wide);
      const start = [across(x0), down(y0)], end = short([across(x0), down(y0)], [across(x2), down(y2)], at % wide);
      const bend = [(start[0] + end[0]) / 2 - (end[1] - start[1]) * 0.18, (start[1] + end[1]) / 2 + (end[0] - start[0]) * 0.18];
      const thick = 1.2 + 5 * Math.sqrt(counts[at] / most), turn = Math.atan2(end[1] - bend[1], end[0] - bend[0]);
      const head = 5 + 1.8 * thick, neck = [end[0] - head * Math.cos(turn) * 0.8, end[1] - head * Math.sin(turn) * 0.8];
      pen.globalAlpha = 0.8;
      pen.lineWidth = thick;
      pen.beginPath();
      pen.moveTo(...start);
      pen.quadraticCurveTo(...bend, ...neck);
      pen.stroke();
      pen.beginPath();
      pen.moveTo(...end);
      for (const side of [-0.42, 0.42]) pen.lineTo(end[0] - head * Math.cos(turn + side), end[1] - head * Math.sin(turn + side));
      pen.fill();
    }
    pen.globalAlpha = 1;
  }

  const words = () => (chosen < 0 ? `all with ${sides[choosing].name} here`
    : `${sides[other()].name} here, ${sides[choosing].name} in the marked place`);

  const model = {
    get count() { return painted().shapes.length; },
    repaint() {},
    scaled() { fitScale(values()); },
    unit: () => words(),
    paint(colourOf) {
      const side = painted(), shown = side.shapes.map((_, zone) => zone);
      if (side.points) shown.sort((one, two) => value(two) - value(one));
      for (const zone of shown) {
        const one = value(zone), [left, top, across_, down_] = boxOf(side, zone, one);
        pen.fillStyle = colour(one);
        pen.strokeStyle = colourOf;
        pen.lineWidth = 1;
        pen.beginPath();
        if (side.points) pen.arc(left + across_ / 2, top + down_ / 2, across_ / 2, 0, 7);
        else pen.rect(left, top, across_, down_);
        pen.fill();
        pen.globalAlpha = side.points ? 0.6 : 0.12;
        pen.stroke();
        pen.globalAlpha = 1;
        if (side.points) label(side.names[zone], left + across_ / 2, top + down_ + 12);
      }
      if (arrows) drawArrows();
      if (chosen >= 0) {
        pen.strokeStyle = ink("--accent");
        pen.lineWidth = 3;
        const [left, top, across_, down_] = boxOf(sides[choosing], chosen, scale.top / 4);
        pen.beginPath();
        if (sides[choosing].points) pen.arc(left + across_ / 2, top + down_ / 2, across_ / 2, 0, 7);
        else pen.rect(left, top, across_, down_);
        pen.stroke();
      }
    },
    at(x, y, side = painted()) {
      if (!side.points) return side.shapes.findIndex((one) => one[0] <= x && x < one[2] && one[1] <= y && y < one[3]);
      let best = -1, least = 30;
      side.shapes.forEach((one, zone) => {
        const far = Math.hypot(across(one[0]) - across(x), down(one[1]) - down(y));
        if (far < least) [best, least] = [zone, far];
      });
      return best;
    },
    box: (zone) => boxOf(painted(), zone, value(zone)),
    middle: (zone) => middle(painted(), zone),
    beside(zone, right, up) {
      const [x, y] = middle(painted(), zone);
      let best = zone, least = Infinity;
      for (let next = 0; next < model.count; next++) {
        const [x2, y2] = middle(painted(), next), along = (x2 - x) * right + (y2 - y) * up;
        const aside = Math.abs((x2 - x) * up) + Math.abs((y2 - y) * right);
        if (along > 1e-12 && along + 3 * aside < least) [best, least] = [next, along + 3 * aside];
      }
      return best;
    },
    describe(zone) {
      const around = chosen < 0 ? totalMargin[choosing](zone) : margin(place(zone));
      const why = around === null ? `\nNo interval: ${told.why || "it was not worked out for sums."}` : "";
      const goal = chosen < 0 ? "" : ` (${named(sides[choosing], chosen)})`;
      return `${painted().name} ${named(painted(), zone)}\n${withError(value(zone), around)}: ${words()}${goal}${why}`;
    },
    largest: () => [["from", "to"], largest(20),
      (at) => [named(sides.from, Math.floor(at / wide)), named(sides.to, at % wide)]],
    value: (at) => counts[at],
    margin,
    choose(x, y) {
      const found = model.at(x, y, sides[choosing]);
      chosen = found === chosen ? -1 : found;
    },
    move() {},
    none() { chosen = -1; },
    direct(name) { choosing = name; chosen = -1; },
    showArrows(on) { arrows = on; },
    sides,
  };
  return model;
}

function label(words, x, y) {
  pen.font = "12px system-ui, sans-serif";
  pen.textAlign = "center";
  pen.lineWidth = 3;
  pen.strokeStyle = ink("--sea");
  pen.strokeText(words, x, y);
  pen.fillStyle = ink("--ink");
  pen.fillText(words, x, y);
}
