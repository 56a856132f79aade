// What a network computes, operation by operation as models/export/inference_network.cpp has it: numbers are
// rounded to float32 after each of them (Math.fround, or by being stored), sums of products of trits and
// int8 codes are whole numbers, and only what is in double there is a plain number here.

const f32 = Math.fround;

/** The bytes of a text in base64. */
const bytesOf = (text) => Uint8Array.from(atob(text), (each) => each.charCodeAt(0));

/** Floats of 4 bytes, the lowest first. */
function floatsOf(text) {
  const view = new DataView(bytesOf(text).buffer);
  return Float32Array.from({ length: view.byteLength / 4 }, (_, i) => view.getFloat32(4 * i, true));
}

/** Trits -1, 0 and 1, five of which are the digits + 1 of a byte in base 3, the first one the lowest. */
function tritsOf(text, count) {
  const packed = bytesOf(text), trits = new Int8Array(count);
  for (let i = 0, byte = 0; i < count; i++) {
    if (i % 5 === 0) byte = packed[i / 5];
    trits[i] = byte % 3 - 1;
    byte = Math.floor(byte / 3);
  }
  return trits;
}

/** A layer with arrays in the place of texts. */
function unpackLayer(layer) {
  const unpacked = { ...layer };
  for (const name of ["scales", "weights", "mean", "inverseStd", "gain", "bias"]) {
    if (layer[name] !== undefined) unpacked[name] = floatsOf(layer[name]);
  }
  if (layer.trits !== undefined) unpacked.trits = tritsOf(layer.trits, layer.inputs * layer.outputs);
  return unpacked;
}

/** Refuses what is no number of float32; NaN is one where training knew what to do with missing cells. */
function checkFeatures(features) {
  if (features.length !== inputs) throw new RangeError(`${features.length} features found, ${inputs} expected`);
  for (let i = 0; i < inputs; i++) {
    const feature = features[i];
    const refuse = (why) => {
      throw new TypeError(`feature ${i}: ${typeof feature === "string" ? `'${feature}'` : feature} found, ${why}`);
    };
    if (typeof feature !== "number") refuse("a number expected");
    if (Number.isNaN(feature) && !missing.allowed) refuse("but in training no cell was missing; give a number");
    if (Math.abs(f32(feature)) === Infinity) refuse("but float32 ends at 3.4e38; give a smaller number");
  }
}

/** Features to zero mean and unit variance; what is missing (NaN) is the mean. */
function standardize(features) {
  const { means, inverseStds, offsets, squareRoots } = network, most = 3.4028234663852886e38;
  return Float32Array.from(features, (feature, i) => {
    const at = means.length === 1 ? 0 : i;
    let value = f32(offsets ? feature - offsets[i] : feature);
    if (squareRoots) value = f32(Math.sqrt(value));
    const z = (value - means[at]) * inverseStds[at];
    return Number.isNaN(value) ? 0 : Math.min(Math.max(z, -most), most);
  });
}

/** Rounds x to codes of -127 .. 127; x is about `scale` times its codes. */
function quantize(x) {
  const whole = 12582912; // 1.5 * 2^23: a float32 that is added to it loses its fraction
  let largest = 0;
  for (const each of x) largest = Math.max(largest, Math.abs(each));
  if (largest < 2 ** -100) largest = 0;
  const inverse = largest > 0 ? f32(127 / largest) : 0;
  const codes = Int8Array.from(x, (each) => {
    const level = Math.min(Math.max(f32(each * inverse), -127), 127);
    return f32(f32(level + whole) - whole);
  });
  return { codes, scale: f32(largest / 127) };
}

/** y = W x of trits and codes: sums of whole numbers, times the scales of x and of each group of inputs. */
function multiplyInIntegers({ trits, scales, inputs, outputs, group }, codes, xScale, y) {
  for (let o = 0, trit = 0, at = 0; o < outputs; o++) {
    let sumOfGroups = -0;
    for (let i = 0; i < inputs; at++) {
      let sum = 0;
      for (const end = Math.min(i + group, inputs); i < end; i++) sum = sum + trits[trit++] * codes[i] | 0;
      sumOfGroups = f32(sumOfGroups + f32(f32(xScale * scales[at]) * f32(sum)));
    }
    y[o] = sumOfGroups;
  }
}

/** y = W x in floats; a weight is a trit, whose scale comes behind the sum, or a float. */
function multiplyInFloats({ trits, weights, scales, inputs, outputs, group }, x, y) {
  for (let o = 0, place = 0, at = 0; o < outputs; o++) {
    let sumOfGroups = -0;
    for (let i = 0; i < inputs; at++) {
      let sum = 0;
      for (const end = Math.min(i + group, inputs); i < end; i++, place++) {
        sum = f32(sum + f32((trits ? trits[place] : weights[place]) * x[i]));
      }
      sumOfGroups = f32(sumOfGroups + (trits ? f32(scales[at] * sum) : sum));
    }
    y[o] = sumOfGroups;
  }
}

/** Copies the 3 x 3 pixels around a pixel; what is outside the image is 0. */
function copyWindow(window, x, pixel, [height, width, channels]) {
  const row = Math.floor(pixel / width), column = pixel % width;
  let to = 0;
  for (let i = row - 1; i <= row + 1; i++) {
    for (let j = column - 1; j <= column + 1; j++) {
      const inside = i >= 0 && i < height && j >= 0 && j < width;
      for (let c = 0; c < channels; c++) window[to++] = inside ? x[(i * width + j) * channels + c] : 0;
    }
  }
}

/** The product of x, or of the window around each of its pixels, or around those that are `stride` apart. */
function multiply(layer, x) {
  const { codes, scale } = layer.inIntegers ? quantize(x) : { codes: x, scale: 1 };
  const product = (from, to) =>
    layer.inIntegers ? multiplyInIntegers(layer, from, scale, to) : multiplyInFloats(layer, from, to);
  if (layer.kind === "linear") {
    const y = new Float32Array(layer.outputs);
    product(codes, y);
    return y;
  }
  const { image: [height, width], stride = 1 } = layer, columns = Math.ceil(width / stride);
  const pixels = Math.ceil(height / stride) * columns, y = new Float32Array(pixels * layer.outputs);
  const window = new codes.constructor(layer.inputs);
  for (let pixel = 0; pixel < pixels; pixel++) {
    const center = (Math.floor(pixel / columns) * width + pixel % columns) * stride;
    copyWindow(window, codes, center, layer.image);
    product(window, y.subarray(pixel * layer.outputs, (pixel + 1) * layer.outputs));
  }
  return y;
}

/** The largest of 2 x 2 pixels, channel by channel. */
function maxPool(x, [height, width, channels]) {
  const y = [], line = width * channels, larger = (a, b) => (a > b ? a : b);
  for (let i = 0; i + 1 < height; i += 2) {
    for (let j = 0; j + 1 < width; j += 2) {
      for (let at = i * line + j * channels, c = 0; c < channels; c++, at++) {
        y.push(larger(larger(x[at], x[at + channels]), larger(x[at + line], x[at + line + channels])));
      }
    }
  }
  return Float32Array.from(y);
}

/** The mean over all pixels of each channel. */
function averagePool(x, [height, width, channels]) {
  const y = new Float32Array(channels);
  for (let c = 0; c < channels; c++) {
    let sum = 0;
    for (let pixel = 0; pixel < height * width; pixel++) sum += x[pixel * channels + c];
    y[c] = sum / (height * width);
  }
  return y;
}

/** The sum of term(x[i]) in 32 lanes, the upper half of which is added to the lower one until one is left. */
function laneSum(x, term) {
  const lanes = new Float64Array(32);
  x.forEach((each, i) => (lanes[i % 32] += term(each)));
  for (let half = 16; half >= 1; half /= 2) {
    for (let i = 0; i < half; i++) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

/** Layer norm, and RMS norm, whose mean is 0. */
function normalizeRow({ norm, gain, bias }, x) {
  const mean = norm === "layer" ? laneSum(x, (value) => value) / x.length : 0;
  const squares = laneSum(x, (value) => (value - mean) * (value - mean));
  const eps = f32(norm === "layer" ? 1e-5 : 1e-6);
  const inverseStd = f32(1 / Math.sqrt(squares / x.length + eps)), center = f32(mean);
  x.forEach((value, i) => {
    x[i] = f32(f32(value - center) * inverseStd) * gain[i];
    if (norm === "layer") x[i] += bias[i];
  });
}

/** Norms in place; of all pixels, those by channels. */
function normalize(layer, x) {
  const { norm, mean, inverseStd, gain, bias } = layer;
  if (norm === "layer" || norm === "rms") return normalizeRow(layer, x);
  x.forEach((value, at) => {
    const i = at % bias.length;
    if (norm === "batch") x[at] = f32(f32(value - mean[i]) * inverseStd[i]) * gain[i];
    x[at] += bias[i];
  });
}

/** The value at x of a polynomial of float32 coefficients, that of the highest power first. */
const polynomial = (x, first, ...others) => others.reduce((p, each) => f32(f32(p * x) + f32(each)), f32(first));

/** e^x for x of 0 .. 20: x = k ln 2 + r, and a polynomial in r (Cephes). */
function exp(x) {
  const whole = 12582912;
  const k = f32(f32(f32(x * f32(1.44269504)) + whole) - whole);
  const r = f32(f32(x - f32(k * f32(0.693359375))) + f32(k * f32(2.12194440e-4)));
  const p = polynomial(r, 1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1,
    5.0000001201e-1);
  let power = 1;
  for (let i = 0; i < k; i++) power *= 2;
  return f32(f32(f32(f32(p * f32(r * r)) + r) + 1) * power);
}

/** A polynomial near 0, elsewhere 1 - 2 / (e^2x + 1). */
function tanh(x) {
  const limited = Math.min(Math.abs(x), 10); // tanh is 1 from 9.02 on
  const sign = x < 0 ? -1 : 1;
  if (limited >= 0.625) return sign * f32(1 - f32(2 / f32(exp(f32(2 * limited)) + 1)));
  const z = f32(limited * limited);
  const p = polynomial(z, -5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1);
  return sign * f32(f32(f32(p * z) * limited) + limited);
}

const activations = {
  relu: (x) => (x < 0 ? 0 : x),
  squared_relu: (x) => (x < 0 ? 0 : f32(x * x)),
  tanh,
};

/**
 * The logits, a number for each class; of a regression the one value, not yet in the units of the label.
 * @param {ArrayLike<number>} features Numbers as the data have them, pixels in the order of rows, pixels of a
 *     row, channels of a pixel; NaN becomes the mean, while encode() fills as in training.
 * @returns {Float32Array}
 * @throws {RangeError|TypeError} Too few or many of them; what is no number of float32, by its index from 0; NaN where
 *     training refused or dropped missing cells.
 */
export function logits(features) {
  checkFeatures(features);
  let x = standardize(features), kept = null;
  for (const layer of network.layers) {
    if (layer.kind === "max_pool") {
      x = maxPool(x, layer.image);
    } else if (layer.kind === "average_pool") {
      x = averagePool(x, layer.image);
    } else {
      if (layer.beginsBlock) kept = x;
      x = multiply(layer, x);
      normalize(layer, x);
      if (layer.endsBlock) x = x.map((each, i) => each + kept[i]);
      if (layer.activation) x = x.map(activations[layer.activation]);
    }
  }
  return x;
}

/**
 * The class, which is the one with the largest logit, and the probabilities of all; of a regression the value, in
 * the units of the label.
 * @param {ArrayLike<number>} features See logits().
 * @returns {{label: string, number: number, probabilities: number[], logits: Float32Array}|{value: number}}
 */
export function predict(features) {
  const found = logits(features);
  if (target) return { value: target.mean + target.deviation * found[0] };
  const largest = Math.max(...found), number = found.indexOf(largest);
  const exponentials = Array.from(found, (each) => Math.exp(each - largest));
  const sum = exponentials.reduce((a, b) => a + b);
  return { label: classes[number], number, probabilities: exponentials.map((each) => each / sum), logits: found };
}

/** The number that the text of a cell is. */
function numberOf(text, column) {
  if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text)) {
    throw new TypeError(`column '${column.name}': '${text}' found, a number expected`);
  }
  if (!Number.isFinite(f32(text))) {
    throw new TypeError(`column '${column.name}': '${text}' found, but float32 ends at 3.4e38; give a smaller number`);
  }
  return Number(text);
}

/** The features that a cell becomes. */
function encodeCell(cell, column) {
  const written = cell === undefined || cell === null ? "" : String(cell);
  const text = column.words?.includes(written) ? written : written.trim(); // a word may have had quotes around blanks
  const isMissing = Number.isNaN(cell) || missing.markers.includes(text);
  if (isMissing && !missing.allowed) throw new TypeError(`column '${column.name}': the cell is missing; fill it`);
  const filled = isMissing && column.fill !== undefined ? String(column.fill) : text;
  const isMean = isMissing && column.fill === undefined;
  const indicator = column.indicator ? [isMissing ? 1 : 0] : [];
  if (!column.words) return [isMean ? NaN : numberOf(filled, column), ...indicator];
  return [...column.words.map((word) => (isMean ? NaN : word === filled ? 1 : 0)), ...indicator];
}

/**
 * The features of a row of a table. Blanks around a cell are none of it, unless training knew the word with them. A
 * word that training did not know is none of its words; a missing cell is undefined, null, NaN, or a text that stands
 * for it, such as "".
 * @param {Object<string, number|string>|Array<number|string>} row Cells by the names of columns, or in their order.
 * @returns {number[]} For logits() and predict().
 */
export function encode(row) {
  if (!columns) throw new TypeError("the inputs are pixels, not the cells of a table");
  const cells = Array.isArray(row) ? row : columns.map(({ name }) => (Object.hasOwn(row, name) ? row[name] : ""));
  if (cells.length !== columns.length) {
    throw new RangeError(`${cells.length} cells found, ${columns.length} expected`);
  }
  return columns.flatMap((column, i) => encodeCell(cells[i], column));
}

const { missing, target, ...description } = /* DESCRIPTION */ {};

const network = {
  ...description,
  means: floatsOf(description.means),
  inverseStds: floatsOf(description.inverseStds),
  layers: description.layers.map(unpackLayer),
};

/** How many features there are; the names of the classes, none for a regression. */
export const { inputs, classes } = network;
/** The columns of a table, each with its `name` and, if it holds words, `words`; null for images. */
export const columns = network.columns ?? null;
/** Height, width and channels of an image, or null. */
export const image = network.image ?? null;
