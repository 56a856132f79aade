
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

const barCount = Math.min(classes.length, 12);
const bars = Array.from({ length: barCount }, () => {
  const bar = {
    name: make("span", { class: "name" }),
    fill: make("div", { class: "fill" }),
    share: make("span", { class: "share" }),
  };
  bar.row = make("li", {}, bar.name, make("div", { class: "track" }, bar.fill), bar.share);
  element("bars").append(bar.row);
  return bar;
});

/** Shows a result of predict(), or, with null, that there is none yet. Of many classes the likeliest are shown. */
function showResult(result) {
  const shares = result ? result.probabilities : classes.map(() => 0);
  const order = shares.map((_, i) => i);
  if (barCount < classes.length) order.sort((a, b) => shares[b] - shares[a] || a - b);
  bars.forEach((bar, i) => {
    const share = shares[order[i]];
    bar.name.textContent = bar.name.title = classes[order[i]];
    bar.fill.style.width = `${100 * share}%`;
    bar.share.textContent = result ? `${(100 * share).toFixed(1)} %` : "";
    bar.row.classList.toggle("best", result !== null && order[i] === result.number);
  });
  const others = classes.length - barCount;
  element("rest").textContent = others > 0 ? `and ${others} other classes` : "";
  element("answer").classList.remove("alert");
  element("answer").replaceChildren(...(result ? [make("strong", {}, result.label)] : []));
}

/** Shows why there is no result. */
function showFault(error) {
  showResult(null);
  element("answer").classList.add("alert");
  element("answer").textContent = error.message;
}

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
  showSeen(values);
  showResult(predict(values.map((value) => value * network.white)));
}

function startSeen() {
  [element("seen").height, element("seen").width] = image;
}

/** A field to draw in. */
function startPad() {
  startSeen();
  const [height, width] = image, pad = element("pad"), pixel = 336 / Math.max(height, width);
  [pad.height, pad.width] = [Math.round(height * pixel), Math.round(width * pixel)];
  const context = pad.getContext("2d", { willReadFrequently: true });
  Object.assign(context, { lineCap: "round", lineJoin: "round", lineWidth: 0.1 * Math.max(pad.width, pad.height) });
  const update = oncePerFrame(() => {
    const values = centred(channelOf(pad, 3), pad.width);
    if (values) predictImage(values);
  });
  let last = null; // the end of the stroke that is being drawn
  const placeOf = (event) => {
    const box = pad.getBoundingClientRect();
    return [(event.clientX - box.left) * pad.width / box.width, (event.clientY - box.top) * pad.height / box.height];
  };
  const drawTo = (place) => {
    context.beginPath();
    context.moveTo(...last);
    context.lineTo(...place);
    context.stroke();
    last = place;
    update();
  };
  pad.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || !event.isPrimary) return;
    pad.setPointerCapture(event.pointerId);
    element("pad-hint").hidden = true;
    last = placeOf(event);
    drawTo(last);
  });
  pad.addEventListener("pointermove", (event) => {
    if (!last || !event.isPrimary) return;
    const events = event.getCoalescedEvents?.() ?? [];
    (events.length > 0 ? events : [event]).forEach((each) => drawTo(placeOf(each)));
  });
  for (const name of ["pointerup", "pointercancel"]) pad.addEventListener(name, () => (last = null));
  return () => {
    context.clearRect(0, 0, pad.width, pad.height);
    element("pad-hint").hidden = false;
    last = null;
    showSeen(new Float64Array(inputs));
    showResult(null);
  };
}

/** A picture from a file: its middle, as large as fits, in the shape of the field. */
async function readPicture(file) {
  const bitmap = await createImageBitmap(file), [height, width, channels] = image;
  const shrink = Math.min(1, 1024 / Math.max(bitmap.width, bitmap.height));
  const canvas = make("canvas", { width: Math.ceil(bitmap.width * shrink), height: Math.ceil(bitmap.height * shrink) });
  canvas.getContext("2d").drawImage(bitmap, 0, 0, canvas.width, canvas.height);
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
    showSeen(new Float64Array(inputs));
    showResult(null);
  };
}

// ---- Tables ----

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

/** A form with a field for each column; rows of many columns are texts alone. */
function startForm() {
  const mostFields = 64, typical = typicalCells(), row = element("row");
  const fields = columns.length > mostFields ? [] : columns.map(fieldOf);
  element("fields").append(...fields.map((field, i) =>
    make("label", {}, make("span", {}, columns[i].name), field)));
  if (fields.length === 0) element("paste").open = true;
  if (missing.allowed) fields.forEach((field) => field.removeAttribute("required"));
  let cells = typical;
  const show = oncePerFrame(() => {
    try {
      showResult(predict(encode(cells)));
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

const kind = image === null ? "form" : image[2] === 1 ? "pad" : "picture";
element("input").append(element(`${kind}-template`).content.cloneNode(true));
const clear = { pad: startPad, picture: startPicture, form: startForm }[kind]();
element("clear").addEventListener("click", clear);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") clear();
});
clear();
