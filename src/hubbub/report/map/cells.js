// Counts of cells, or of leaves of many sizes, at one moment or at one of several.
function singles(columns, rows) { // every cell by itself, along x first
  const found = new Int32Array(4 * columns * rows);
  for (let y = 0, at = 0; y < rows; y++) for (let x = 0; x < columns; x++, at += 4) found.set([x, x + 1, y, y + 1], at);
  return found;
}

function cellMap() {
  const [columns, rows] = [told.edges[0][2], told.edges[1][2]];
  const boxes = told.boxes === null ? singles(columns, rows) : unpack(told.boxes), many = boxes.length / 4;
  const counts = unpack(told.counts), margin = each(told.margins);
  const owner = new Int32Array(columns * rows), sizes = new Float64Array(many);
  for (let zone = 0; zone < many; zone++) {
    const [west, east, south, north] = boxes.subarray(4 * zone, 4 * zone + 4);
    sizes[zone] = (east - west) * (north - south);
    for (let y = south; y < north; y++) owner.fill(zone, y * columns + west, y * columns + east);
  }
  const edge = (axis, place) => told.edges[axis][0] + (told.edges[axis][1] - told.edges[axis][0]) * place / told.edges[axis][2];
  const picture = document.createElement("canvas");
  picture.width = columns;
  picture.height = rows;
  const zones = Int32Array.from({ length: many }, (_, zone) => zone);
  let moment = 0;

  function repaint() { // one dot for each cell of the grid; the browser makes them large
    const drawing = picture.getContext("2d"), image = drawing.createImageData(columns, rows);
    const at = new Int32Array(many);
    for (let zone = 0; zone < many; zone++) at[zone] = shadeOf(counts[moment * many + zone] / sizes[zone]);
    for (let y = 0; y < rows; y++) {
      for (let x = 0; x < columns; x++) {
        const shade = at[owner[y * columns + x]], dot = 4 * ((rows - 1 - y) * columns + x);
        image.data[dot] = ramp[shade];
        image.data[dot + 1] = ramp[shade + 1];
        image.data[dot + 2] = ramp[shade + 2];
        image.data[dot + 3] = 255;
      }
    }
    drawing.putImageData(image, 0, 0);
  }

  function box(zone) { // on the screen: left, top, width, height
    const [west, east, south, north] = boxes.subarray(4 * zone, 4 * zone + 4);
    const left = across(edge(0, west)), top = down(edge(1, north));
    return [left, top, across(edge(0, east)) - left, down(edge(1, south)) - top];
  }

  const known = new Map();
  function runs(least) { // edges of leaves with at least so many cells a side, joined to long lines: [place, from, to]
    if (known.has(least)) return known.get(least);
    const marks = [new Uint8Array((columns + 1) * rows), new Uint8Array((rows + 1) * columns)];
    for (let zone = 0; zone < many; zone++) {
      const at = 4 * zone, west = boxes[at], east = boxes[at + 1], south = boxes[at + 2], north = boxes[at + 3];
      if (east - west < least || north - south < least) continue;
      for (const x of [west, east]) marks[0].fill(1, x * rows + south, x * rows + north);
      for (const y of [south, north]) marks[1].fill(1, y * columns + west, y * columns + east);
    }
    const found = marks.map((some, axis) => {
      const long = axis ? columns : rows, lines = [];
      for (let at = 0; at < some.length; at++) {
        if (!some[at]) continue;
        const place = Math.floor(at / long), from = at % long;
        while (at % long < long - 1 && some[at + 1]) at++;
        lines.push([place, from, at % long + 1]);
      }
      return lines;
    });
    known.set(least, found);
    return found;
  }

  function outlines(colourOf) {
    const dot = Math.min(view.scale * (edge(0, 1) - edge(0, 0)), view.scale * told.aspect * (edge(1, 1) - edge(1, 0)));
    const [upright, level] = runs(Math.max(1, Math.ceil(3 / dot)));
    pen.fillStyle = colourOf;
    pen.globalAlpha = 0.4;
    for (const [place, from, to] of upright) {
      const x = across(edge(0, place)), top = down(edge(1, to)), high = down(edge(1, from)) - top;
      if (x >= -1 && x <= view.wide && top <= view.high && top + high >= 0) pen.fillRect(x, top, 1, high);
    }
    for (const [place, from, to] of level) {
      const y = down(edge(1, place)), left = across(edge(0, from)), wide = across(edge(0, to)) - left;
      if (y >= -1 && y <= view.high && left <= view.wide && left + wide >= 0) pen.fillRect(left, y, wide, 1);
    }
    pen.globalAlpha = 1;
  }

  const model = {
    count: many,
    repaint,
    scaled() {
      scale.top = told.top;
      scale.middle = told.middle;
    },
    unit: () => told.partition ? "count for each cell of the grid; leaves are outlined" : "count in a cell",
    paint(colourOf) {
      const left = across(told.edges[0][0]), top = down(told.edges[1][1]);
      pen.imageSmoothingEnabled = false;
      pen.drawImage(picture, left, top, across(told.edges[0][1]) - left, down(told.edges[1][0]) - top);
      if (told.partition || Math.abs(box(0)[2]) > 24) outlines(colourOf);
    },
    at(x, y) {
      const column = Math.floor((x - told.edges[0][0]) / (told.edges[0][1] - told.edges[0][0]) * columns);
      const row = Math.floor((y - told.edges[1][0]) / (told.edges[1][1] - told.edges[1][0]) * rows);
      return column < 0 || row < 0 || column >= columns || row >= rows ? -1 : owner[row * columns + column];
    },
    box,
    middle(zone) {
      const [west, east, south, north] = boxes.subarray(4 * zone, 4 * zone + 4);
      return [edge(0, (west + east) / 2), edge(1, (south + north) / 2)];
    },
    beside(zone, right, up) { // the neighbour in a direction
      const [west, east, south, north] = boxes.subarray(4 * zone, 4 * zone + 4);
      const column = right > 0 ? east : right < 0 ? west - 1 : (west + east - 1) >> 1;
      const row = up > 0 ? north : up < 0 ? south - 1 : (south + north - 1) >> 1;
      return column < 0 || row < 0 || column >= columns || row >= rows ? zone : owner[row * columns + column];
    },
    where(zone) {
      const [west, east, south, north] = boxes.subarray(4 * zone, 4 * zone + 4), short = (one) => Number(one.toPrecision(7));
      return `${told.x} ${short(edge(0, west))} to ${short(edge(0, east))}, ` +
        `${told.y} ${short(edge(1, south))} to ${short(edge(1, north))}`;
    },
    value: (zone) => counts[moment * many + zone],
    margin: (zone) => margin(moment * many + zone),
    describe(zone) {
      const when = told.movedBy === null ? "" : `, ${told.movedBy} ${told.moments[moment]}`;
      const leaf = told.partition && sizes[zone] > 1 ? ` in a leaf of ${number(sizes[zone])} cells` : "";
      const why = told.margins === null ? `\nNo interval: ${told.why}` : "";
      return `${model.where(zone)}${when}\n${withError(model.value(zone), model.margin(zone))}${leaf}${why}`;
    },
    largest: () => [["cell"], zones, (zone) => [model.where(zone)]],
    choose() {},
    move(place) { moment = place; },
    busiest() {
      const sums = told.moments.map((_, at) => counts.subarray(at * many, (at + 1) * many).reduce((sum, one) => sum + one, 0));
      return sums.indexOf(Math.max(...sums));
    },
  };
  return model;
}
