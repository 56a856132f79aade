
// ---- The page: what is drawn, chosen or typed becomes features, and probabilities become bars. It stands behind
// model.js in one module.

const element = (id) => document.getElementById(id);

/** A new element with attributes and children, which may be texts. */
function make(tag, attributes, ...children) {
  const made = document.createElement(tag);
  Object.entries(attributes).forEach(([name, value]) => made.setAttribute(name, value));
  made.append(...children);
  return made;
}

/** Returns a function that calls `action` before the next picture is shown, however often it is called. */
function oncePerFrame(action) {
  let waits = false;
  return () => {
    if (waits) return;
    waits = true;
    requestAnimationFrame(() => {
      waits = false;
      action();
    });
  };
}

// ---- Bars ----

// Of more classes than fit beside a field, the likeliest are shown, and all of them on demand.
const isLong = classes.length > 12, shortCount = isLong ? 10 : classes.length;
const bars = [];
let showsAll = false, shownResult = null;

/** A name that leaves room for a bar: of a longer one the middle is left out, for ends tell names apart. */
function shortName(name) {
  const letters = Array.from(name), half = 28;
  return letters.length <= 2 * half ? name : [...letters.slice(0, half), "…", ...letters.slice(-half)].join("");
}

function addBar() {
  const bar = {
    name: make("span", { class: "name" }),
    fill: make("div", { class: "fill" }),
    share: make("span", { class: "share" }),
  };
  bar.row = make("li", {}, bar.name, make("div", { class: "track" }, bar.fill), bar.share);
  element("bars").append(bar.row);
  bars.push(bar);
}

/** Bars of a result of predict(), empty ones for null. */
function showBars(result) {
  const count = showsAll ? classes.length : shortCount;
  while (bars.length < count) addBar();
  bars.splice(count).forEach((bar) => bar.row.remove());
  const order = classes.map((_, i) => i);
  if (isLong && result) order.sort((a, b) => result.probabilities[b] - result.probabilities[a] || a - b);
  bars.forEach((bar, i) => {
    const share = result ? 100 * result.probabilities[order[i]] : 0;
    bar.name.title = classes[order[i]];
    bar.name.textContent = shortName(classes[order[i]]);
    bar.fill.style.width = `${share}%`;
    bar.share.textContent = result ? `${share.toFixed(1)} %` : "";
    bar.row.classList.toggle("best", result !== null && order[i] === result.number);
  });
  const others = classes.length - shortCount;
  element("more").textContent = showsAll ? "Show fewer" : `Show ${others} more classes`;
}

/** Shows a text or an element as the answer, as a `kind` of it (a class of the style) or a plain one. */
function showAnswer(answer, kind) {
  element("answer").className = kind;
  element("answer").replaceChildren(answer);
}

/** Shows a result of predict(), and above it what there is to note about its input. */
function showResult(result, note = "") {
  element("note").textContent = note;
  element("note").hidden = note === "";
  showBars(shownResult = result);
  showAnswer(make("strong", {}, result.label ?? String(Number(result.value.toPrecision(6)))), "");
}

/** Shows that there is no result, and why. */
function showNone(text, kind) {
  element("note").hidden = true;
  showBars(shownResult = null);
  showAnswer(text, kind);
}
const showFault = (error) => showNone(error.message, "alert");

// ---- Images ----

/** Means of `count` stretches of values that follow each other from `from` on; what is outside is 0. */
function meansOfStretches(values, from, length, count) {
  return Float64Array.from({ length: count }, (_, i) => {
    const begin = Math.max(from + i * length, 0), end = Math.min(from + (i + 1) * length, values.length);
    let sum = 0;
    for (let j = Math.floor(begin); j < end; j++) sum += values[j] * (Math.min(j + 1, end) - Math.max(j, begin));
    return sum / length;
  });
}

/** Means of rectangles of an image, [height x width] of them: where the first one begins, and how long sides are. */
function meansOfRectangles(pixels, pixelWidth, { left, top, side }, height, width) {
  const lines = Array.from({ length: pixels.length / pixelWidth }, (_, row) =>
    meansOfStretches(pixels.subarray(row * pixelWidth, (row + 1) * pixelWidth), left, side, width));
  const means = new Float64Array(height * width);
  for (let column = 0; column < width; column++) {
    const line = Float64Array.from(lines, (each) => each[column]);
    meansOfStretches(line, top, side, height).forEach((mean, row) => (means[row * width + column] = mean));
  }
  return means;
}

/** One of the four channels of a canvas, from 0 to 1. */
function channelOf(canvas, channel) {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  return Float64Array.from({ length: data.length / 4 }, (_, i) => data[4 * i + channel] / 255);
}

/** The box around the ink, its sum, and its centre of mass; null where there is none. */
function measureInk(ink, width) {
  const box = { left: width, top: Infinity, right: 0, bottom: 0, mass: 0, x: 0, y: 0 };
  ink.forEach((value, i) => {
    if (value === 0) return;
    const x = i % width, y = Math.floor(i / width);
    box.left = Math.min(box.left, x);
    box.right = Math.max(box.right, x + 1);
    box.top = Math.min(box.top, y);
    box.bottom = y + 1;
    box.mass += value;
    box.x += value * (x + 0.5);
    box.y += value * (y + 0.5);
  });
  return box.mass === 0 ? null : { ...box, x: box.x / box.mass, y: box.y / box.mass };
}

/**
 * A drawing as the data have their images, values of 0 to 1: the box around the ink is as large as theirs are by the
 * mean, and its centre of mass is in the middle of the field, in whole pixels, unless the box would leave the field.
 */
function centred(ink, inkWidth) {
  const [height, width] = image, box = measureInk(ink, inkWidth);
  if (!box) return null;
  const side = Math.max((box.right - box.left) / width, (box.bottom - box.top) / height) / network.ink;
  const margin = (length, center, begin, end) => {
    const most = length - (end - begin) / side;
    return Math.round(Math.min(Math.max(length / 2 - (center - begin) / side, 0), most));
  };
  const left = margin(width, box.x, box.left, box.right), top = margin(height, box.y, box.top, box.bottom);
  return meansOfRectangles(ink, inkWidth, { left: box.left - left * side, top: box.top - top * side, side }, height,
    width);
}

/** Shows features of 0 to 1 as a picture. */
function showSeen(values) {
  const [height, width, channels] = image, seen = element("seen"), context = seen.getContext("2d");
  const picture = context.createImageData(width, height);
  picture.data.forEach((_, i) => {
    const pixel = Math.floor(i / 4), channel = Math.min(i % 4, channels - 1);
    picture.data[i] = i % 4 === 3 ? 255 : Math.round(255 * values[pixel * channels + channel]);
  });
  context.putImageData(picture, 0, 0);
}

/** Predicts from values of 0 to 1, black to white. */
function predictImage(values) {
  element("seen").parentElement.hidden = false;
  showSeen(values);
  showResult(predict(values.map((value) => value * network.white)));
}

/** Says what to do, while nothing is seen. */
function showNoImage(text) {
  element("seen").parentElement.hidden = true;
  showNone(text, "hint");
}

function startSeen() {
  [element("seen").height, element("seen").width] = image;
}

/** Draws strokes, each of which is a list of places [x, y], with a round pen; one that stays in its place is a dot. */
function drawStrokes(context, strokes, pen) {
  Object.assign(context, { lineCap: "round", lineJoin: "round", lineWidth: pen });
  for (const [first, ...others] of strokes) {
    context.beginPath();
    context.arc(...first, pen / 2, 0, 2 * Math.PI);
    context.fill();
    context.beginPath();
    context.moveTo(...first);
    others.forEach((place) => context.lineTo(...place));
    context.stroke();
  }
}

/**
 * Draws strokes anew, in a square at the top left, which they fill: with a pen that is as wide beside the whole as the
 * strokes of the data are, however large they were drawn. What is smaller than `least` does not become that large.
 */
function drawLarge(context, strokes, side, least) {
  const [left, top, right, bottom] = [0, 1, 0, 1].map((axis, i) =>
    strokes.flat().map((place) => place[axis]).reduce((a, b) => (i < 2 ? Math.min(a, b) : Math.max(a, b))));
  const pen = network.pen * side, factor = (side - pen) / Math.max(right - left, bottom - top, least);
  const moved = ([x, y]) => [pen / 2 + factor * (x - left), pen / 2 + factor * (y - top)];
  context.clearRect(0, 0, context.canvas.width, context.canvas.height);
  drawStrokes(context, strokes.map((stroke) => stroke.map(moved)), pen);
}

/** A field to draw in. */
function startPad() {
  startSeen();
  const [height, width] = image, pad = element("pad"), pixel = 336 / Math.max(height, width);
  [pad.height, pad.width] = [Math.round(height * pixel), Math.round(width * pixel)];
  const context = pad.getContext("2d"), side = Math.min(pad.width, pad.height);
  // What is seen is right for a drawing of any size; what is drawn is so where its strokes span 0.6 of the field.
  const pen = 0.6 * side * network.pen / (1 - network.pen);
  const sheet = make("canvas", { width: pad.width, height: pad.height });
  const sheetContext = sheet.getContext("2d", { willReadFrequently: true });
  let strokes = [], isDown = false;
  const update = oncePerFrame(() => {
    if (strokes.length === 0) return;
    drawLarge(sheetContext, strokes, side, pen);
    const values = centred(channelOf(sheet, 3), sheet.width);
    if (values) predictImage(values);
  });
  const placeOf = (event) => {
    const box = pad.getBoundingClientRect();
    return [(event.clientX - box.left) * pad.width / box.width, (event.clientY - box.top) * pad.height / box.height];
  };
  const drawTo = (place) => {
    const stroke = strokes.at(-1);
    stroke.push(place);
    drawStrokes(context, [stroke.slice(-2)], pen);
    update();
  };
  pad.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || !event.isPrimary) return;
    pad.setPointerCapture(event.pointerId);
    element("pad-hint").hidden = true;
    isDown = true;
    strokes.push([]);
    drawTo(placeOf(event));
  });
  pad.addEventListener("pointermove", (event) => {
    if (!isDown || !event.isPrimary) return;
    const events = event.getCoalescedEvents?.() ?? [];
    (events.length > 0 ? events : [event]).forEach((each) => drawTo(placeOf(each)));
  });
  for (const name of ["pointerup", "pointercancel"]) pad.addEventListener(name, () => (isDown = false));
  return () => {
    context.clearRect(0, 0, pad.width, pad.height);
    element("pad-hint").hidden = false;
    strokes = [];
    isDown = false;
    showNoImage("Draw in the field: what the network takes it for appears here.");
  };
}

/** A picture from a file: its middle, as large as fits, in the shape of the field. */
async function readPicture(file) {
  const bitmap = await createImageBitmap(file), [height, width, channels] = image;
  const shrink = Math.min(1, 1024 / Math.max(bitmap.width, bitmap.height));
  const canvas = make("canvas", { width: Math.ceil(bitmap.width * shrink), height: Math.ceil(bitmap.height * shrink) });
  canvas.getContext("2d", { willReadFrequently: true }).drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  const side = Math.min(canvas.width / width, canvas.height / height);
  const place = { left: (canvas.width - side * width) / 2, top: (canvas.height - side * height) / 2, side };
  const planes = Array.from({ length: channels }, (_, c) =>
    meansOfRectangles(channelOf(canvas, c), canvas.width, place, height, width));
  return Float64Array.from({ length: inputs }, (_, i) => planes[i % channels][Math.floor(i / channels)]);
}

/** A field for pictures from files. */
function startPicture() {
  startSeen();
  const drop = element("drop");
  const read = (files) => {
    if (files.length === 0) return;
    readPicture(files[0]).then(predictImage)
      .catch(() => showFault(new TypeError(`'${files[0].name}' is no picture that this browser can read`)));
  };
  element("file").addEventListener("change", (event) => read(event.target.files));
  for (const name of ["dragover", "dragleave", "drop"]) {
    drop.addEventListener(name, (event) => {
      event.preventDefault();
      drop.classList.toggle("over", name === "dragover");
      if (name === "drop") read(event.dataTransfer.files);
    });
  }
  return () => {
    element("file").value = "";
    showNoImage("Choose a picture: what the network takes it for appears here.");
  };
}

// ---- Tables ----

const mostFields = 64; // rows of more columns are texts alone

/** The cells of a line of text; in quotes, which are doubled there, separators are letters. */
function cellsOf(line) {
  const plain = line.replace(/"[^"]*"/g, ""), separator = ["\t", ";"].find((each) => plain.includes(each)) ?? ",";
  const cells = [""];
  let isQuoted = false;
  for (let i = 0; i < line.length; i++) {
    if (line[i] === '"' && !(isQuoted && line[i + 1] === '"')) {
      isQuoted = !isQuoted;
    } else if (line[i] === separator && !isQuoted) {
      cells.push("");
    } else {
      if (line[i] === '"') i++;
      cells[cells.length - 1] += line[i];
    }
  }
  return cells.map((cell) => cell.trim());
}

/** The line of text that cellsOf() reads so. */
const lineOf = (cells) =>
  cells.map((cell) => (/[",;\t]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell)).join(", ");

/** What fills a field at first: the mean of the training rows, or their most frequent word. */
function typicalCells() {
  let at = 0;
  return columns.map((column) => {
    const count = column.words ? column.words.length : 1;
    const means = Array.from(network.means.slice(at, at + count));
    const offset = network.offsets ? network.offsets[at] : 0;
    at += count + (column.indicator ? 1 : 0);
    if (column.fill !== undefined) return String(column.fill);
    if (column.words) return column.words[means.indexOf(Math.max(...means))];
    return String(Number(means[0].toPrecision(4)) + offset);
  });
}

/** The field of a column. */
function fieldOf(column) {
  if (!column.words) return make("input", { type: "number", step: "any", required: "" });
  const words = column.words.map((word) => make("option", { value: word }, word));
  return make("select", {}, ...(missing.allowed ? [make("option", { value: "" }, "(missing)")] : []), ...words);
}

/** The words of a row that training did not know, in a sentence; "" where there are none. */
function noteUnknown(cells) {
  const unknown = columns.flatMap(({ name, words }, i) => {
    const cell = String(cells[i]), known = !words || [cell, cell.trim()].some((each) => words.includes(each));
    return known || missing.markers.includes(cell.trim()) ? [] : [`'${cell}' in '${name}'`];
  });
  return unknown.length === 0 ? "" : `Words that training did not know count as none of those it knew: ${unknown.join(", ")}`;
}

/** The names of all columns in their order, which rows as texts have. */
function showOrder() {
  const order = element("order"), [summary, list] = order.children;
  order.hidden = false;
  summary.textContent = `The names of the ${columns.length} columns, in their order`;
  list.append(...columns.map(({ name, words }) =>
    make("li", {}, words ? `${name}: ${words.slice(0, 12).join(", ")}${words.length > 12 ? ", …" : ""}` : name)));
}

/** A form with a field for each column. */
function startForm() {
  const typical = typicalCells(), row = element("row");
  const fields = columns.length > mostFields ? [] : columns.map(fieldOf);
  element("fields").append(...fields.map((field, i) =>
    make("label", {}, make("span", {}, columns[i].name), field)));
  if (fields.length === 0) {
    element("paste").open = true;
    showOrder();
  }
  if (missing.allowed) fields.forEach((field) => field.removeAttribute("required"));
  let cells = typical;
  const show = oncePerFrame(() => {
    try {
      showResult(predict(encode(cells)), cells === typical
        ? "A typical row (the means and the most frequent words of the training data), until you change it:"
        : noteUnknown(cells));
    } catch (error) {
      showFault(error);
    }
  });
  const fill = () => fields.forEach((field, i) => (field.value = cells[i] ?? ""));
  element("fields").addEventListener("input", () => {
    cells = fields.map((field) => field.value);
    row.value = lineOf(cells);
    show();
  });
  element("fields").addEventListener("submit", (event) => event.preventDefault());
  row.addEventListener("input", () => {
    cells = cellsOf(row.value);
    fill();
    show();
  });
  return () => {
    cells = typical;
    row.value = lineOf(cells);
    fill();
    show();
  };
}

// ---- Start ----

/** What there is to do, for the headline. */
function taskOf(kind) {
  if (kind === "form") return columns.length > mostFields ? "Paste a row" : "Fill in the form";
  if (kind === "picture") return "Choose a picture";
  if (classes.every((name) => /^\d$/.test(name))) return "Draw a digit";
  return classes.every((name) => /^[a-z]$/i.test(name)) ? "Draw a letter" : "Draw a picture";
}

const kind = image === null ? "form" : image[2] === 1 ? "pad" : "picture";
element("task").textContent = taskOf(kind);
element("input").classList.add(kind);
element("input").append(element(`${kind}-template`).content.cloneNode(true));
const clear = { pad: startPad, picture: startPicture, form: startForm }[kind]();
element("clear").addEventListener("click", clear);
element("more").hidden = !isLong;
element("more").addEventListener("click", () => {
  showsAll = !showsAll;
  showBars(shownResult);
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") clear();
});
clear();
