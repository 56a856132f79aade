// Runs exported ONNX models in onnxruntime, and compares classes and logits on every row with those of reference.c.
// Usage: node read_onnx.mjs READERS FOLDER...
// READERS has onnxruntime-node in its node_modules. Each folder has rows.csv, reference (what reference.c wrote of its
// rows), case.json ({"equal": whether logits are equal bit by bit, "terms": inputs of all layers}), and the models
// m.onnx, standard.onnx and raw.onnx, whose inputs are standardised.
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

const [readers, ...folders] = process.argv.slice(2);
const ort = createRequire(path.resolve(readers, 'package.json'))('onnxruntime-node');

const fail = (...words) => {
  throw new Error(words.join(' '));
};

function expect(condition, ...words) {
  if (!condition) fail(...words);
}

function largestAt(row) {
  let best = 0;
  row.forEach((x, i) => {
    if (x > row[best]) best = i;
  });
  return best;
}

// The rows as numbers, and what the reference makes of each.
function readReference(folder, inputs, classes) {
  const rows = fs.readFileSync(path.join(folder, 'rows.csv'), 'utf8').trim().split('\n');
  const features = rows.flatMap((row) => row.split(',').map(Number));
  const bytes = fs.readFileSync(path.join(folder, 'reference'));
  const width = inputs + classes + 1;
  expect(features.length === rows.length * inputs, folder, 'has rows of', features.length / rows.length, 'numbers');
  expect(bytes.length === rows.length * width * 4, folder, 'has', bytes.length, 'bytes of reference');
  const floats = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
  return rows.map((_, r) => {
    const [x, y] = [r * width, r * width + inputs];
    return {
      features: features.slice(r * inputs, (r + 1) * inputs),
      standardized: floats.subarray(x, y),
      logits: floats.subarray(y, y + classes),
      slack: floats[y + classes],
    };
  });
}

// By how much a logit may differ: tolerance() of models/export/inference_network.h, and the slack of reference.c.
function boundOf(row, { equal, terms }) {
  if (equal) return 0;
  const largest = Math.max(1, ...row.logits.map(Math.abs));
  return 4 * (terms + 16) * 2 ** -24 * largest + row.slack;
}

// `names` are those of the classes that were met.
function compareRow(file, r, expected, found, kind, names) {
  const bound = boundOf(expected, kind);
  let difference = 0;
  found.logits.forEach((x, i) => {
    const apart = Math.abs(x - expected.logits[i]);
    expect(apart <= bound, file, 'row', r, 'class', i, 'logit', x, 'expected', expected.logits[i], 'within', bound);
    difference = Math.max(difference, apart);
  });
  // Another class is none's fault where two logits are closer than both may be off.
  const best = largestAt(expected.logits);
  const gap = expected.logits[best] - expected.logits[found.label];
  expect(found.label === best || (!kind.equal && gap <= 2 * bound), file, 'row', r, 'class', found.label, 'expected', best);
  expect(found.label === largestAt(found.logits), file, 'row', r, 'label', found.label, 'is not the largest logit');
  const named = names.get(found.label) ?? found.name;
  expect(typeof named === 'string' && found.name === named, file, 'row', r, 'class', found.name, 'expected', named);
  names.set(found.label, named);
  const sum = found.probabilities.reduce((a, b) => a + b, 0);
  // Each of them is rounded, and so is what they are divided by.
  expect(Math.abs(sum - 1) <= 2 * found.probabilities.length * 2 ** -23, file, 'row', r, 'probabilities add up to', sum);
  return difference;
}

async function runRows(session, values, type, inputs) {
  const count = values.length / inputs;
  const data = type === 'float64' ? Float64Array.from(values) : Float32Array.from(values);
  const out = await session.run({ features: new ort.Tensor(type, data, [count, inputs]) });
  const classes = out.logits.dims[1];
  return Array.from({ length: count }, (_, r) => ({
    logits: out.logits.data.subarray(r * classes, (r + 1) * classes),
    probabilities: out.probabilities.data.subarray(r * classes, (r + 1) * classes),
    label: Number(out.label.data[r]),
    name: out.class.data[r],
  }));
}

async function compareModel(file, folder, kind, level, raw) {
  const session = await ort.InferenceSession.create(file, {
    graphOptimizationLevel: level,
    intraOpNumThreads: 1,
    logSeverityLevel: 3,
  });
  const { type, shape } = session.inputMetadata[0];
  const [inputs, classes] = [shape[1], session.outputMetadata[0].shape[1]];
  expect(session.inputNames.join() === 'features', file, 'has inputs', session.inputNames);
  expect(session.outputNames.join() === 'logits,probabilities,label,class', file, 'has outputs', session.outputNames);
  const rows = readReference(folder, inputs, classes);
  const values = (row) => Array.from(raw ? row.standardized : row.features);
  const found = await runRows(session, rows.flatMap(values), type, inputs);
  const single = await runRows(session, values(rows[0]), type, inputs);
  const names = new Map();
  let difference = compareRow(file, 'alone', rows[0], single[0], kind, names);
  rows.forEach((row, r) => {
    difference = Math.max(difference, compareRow(file, r, row, found[r], kind, names));
  });
  expect(new Set(names.values()).size === names.size, file, 'has classes of one name');
  return { rows: rows.length, difference };
}

for (const folder of folders) {
  const kind = JSON.parse(fs.readFileSync(path.join(folder, 'case.json'), 'utf8'));
  const results = [];
  for (const name of ['m.onnx', 'standard.onnx', 'raw.onnx']) {
    const levels = name === 'm.onnx' ? ['all', 'disabled'] : ['all'];
    for (const level of levels) {
      results.push(await compareModel(path.join(folder, name), folder, kind, level, name === 'raw.onnx'));
    }
  }
  const difference = Math.max(...results.map((each) => each.difference));
  const said = kind.equal ? 'logits are equal, bit by bit' : `logits differ by ${difference.toPrecision(2)} at most`;
  console.log(`${path.basename(folder)}: ${results[0].rows} rows, ${said}`);
}
