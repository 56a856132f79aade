// Runs GGUF files in llama.cpp, and compares what they compute with what we computed of them.
// Usage: node read_gguf.mjs READERS FOLDER...
// READERS has node-llama-cpp in its node_modules. Each folder has m.gguf, case.json and logits, as
// tests/readers/write_gguf.cpp describes them, or write_trained_gguf.cpp.
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const [readers, ...folders] = process.argv.slice(2);
const module = path.resolve(readers, 'node_modules/node-llama-cpp/dist/index.js');
const { getLlama, LlamaLogLevel } = await import(pathToFileURL(module));

const kEqualOf16 = 15;

function expect(condition, ...words) {
  if (!condition) throw new Error(words.join(' '));
}

function largestAt(row) {
  let best = 0;
  row.forEach((x, i) => {
    if (x > row[best]) best = i;
  });
  return best;
}

function logProbabilities(row) {
  const largest = Math.max(...row);
  const total = Math.log(row.reduce((sum, x) => sum + Math.exp(x - largest), 0));
  return row.map((x) => x - largest - total);
}

// Sum of p log(p / q).
function divergence(expected, found) {
  const [p, q] = [logProbabilities(expected), logProbabilities(found)];
  return p.reduce((sum, x, i) => sum + Math.exp(x) * (x - q[i]), 0);
}

function readCase(folder) {
  const made = JSON.parse(fs.readFileSync(path.join(folder, 'case.json'), 'utf8'));
  const bytes = fs.readFileSync(path.join(folder, 'logits'));
  const numbers = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
  expect(numbers.length === made.tokens.length * made.vocabulary, folder, 'has', numbers.length, 'logits');
  made.rows = made.tokens.map((_, i) => Array.from(numbers.subarray(i * made.vocabulary, (i + 1) * made.vocabulary)));
  return made;
}

// Returns the logits behind every token, read at once.
async function logitsOf(sequence, { tokens, vocabulary }) {
  await sequence.clearHistory();
  const asked = tokens.map((token) => [token, { generateNext: { logits: true } }]);
  const answers = await sequence.controlledEvaluate(asked);
  return answers.map(({ next }) => {
    expect(next.logits.size === vocabulary, 'a vocabulary of', next.logits.size, 'expected', vocabulary);
    return Array.from({ length: vocabulary }, (_, token) => next.logits.get(token));
  });
}

// Returns the prompt and what llama.cpp continues it with, token by token.
async function continuation(sequence, { tokens, prompt }) {
  await sequence.clearHistory();
  const made = tokens.slice(0, prompt);
  for await (const token of sequence.evaluate(made.slice(), { temperature: 0, yieldEogToken: true })) {
    made.push(token);
    if (made.length === tokens.length) break;
  }
  return made;
}

function checkTokens(model, { pieces }, folder) {
  const equal = (text, expected) => {
    const found = model.tokenize(text, false);
    expect(found.join() === expected.join(), folder, 'cuts', JSON.stringify(text), 'into', found, 'expected', expected);
  };
  if (pieces) {
    // (write_gguf.cpp, tests/support/random_language.h.) What has no piece is bytes.
    equal('hello held', [261, 262, 261, 266, 268]);
    equal('\u00e9', [263, 3 + 0xc3, 3 + 0xa9]);
    return;
  }
  for (const text of ['a b\n\tc', 'Gr\u00fc\u00dfe, \u4e16\u754c!  \u{1f600}', "it's 12,345 <|endoftext|>"]) {
    const bytes = Array.from(new TextEncoder().encode(text));
    equal(text, bytes);
    expect(model.detokenize(bytes) === text, folder, 'joins', bytes, 'to', JSON.stringify(model.detokenize(bytes)));
  }
}

// By how much the largest number is larger than the next one.
function leadOf(row) {
  const best = largestAt(row);
  return row[best] - Math.max(...row.filter((_, i) => i !== best));
}

function compareLogits(folder, made, found) {
  let [equal, kl, apart] = [0, 0, 0];
  made.rows.forEach((row, i) => {
    equal += largestAt(row) === largestAt(found[i]) ? 1 : 0;
    kl += divergence(row, found[i]) / made.rows.length;
    row.forEach((x, t) => (apart = Math.max(apart, Math.abs(x - found[i][t]))));
  });
  expect(equal * 16 >= made.rows.length * kEqualOf16, folder, 'argmax equal on', equal, 'of', made.rows.length);
  expect(kl <= made.most_kl, folder, 'has a mean KL of', kl, 'at most', made.most_kl, 'expected');
  return { equal, kl, apart };
}

// Another token is right where two logits are closer than both may be off.
function compareContinuation(folder, made, tokens, apart) {
  const at = tokens.findIndex((token, i) => token !== made.tokens[i]);
  if (at < 0) return 'and continued alike';
  const lead = leadOf(made.rows[at - 1]);
  expect(lead <= 2 * apart, folder, 'continues with', tokens[at], 'at', at, 'expected', made.tokens[at], 'by', lead);
  return `continued alike up to token ${at}, where two are closer than that`;
}

async function runCase(llama, folder) {
  const made = readCase(folder);
  const model = await llama.loadModel({ modelPath: path.join(folder, 'm.gguf') });
  if (!made.trained) checkTokens(model, made, folder);
  const context = await model.createContext({
    contextSize: made.tokens.length + 8,
    threads: 1,
    flashAttention: made.cache === 'F16',
    experimentalKvCacheKeyType: made.cache,
    experimentalKvCacheValueType: made.cache,
  });
  const sequence = context.getSequence();
  const { equal, kl, apart } = compareLogits(folder, made, await logitsOf(sequence, made));
  const continued = made.trained
    ? 'in a text'
    : compareContinuation(folder, made, await continuation(sequence, made), apart);
  console.log(
    `${path.basename(folder)}: argmax equal on ${equal} of ${made.rows.length} positions, mean KL ${kl.toExponential(1)}, ` +
      `logits ${apart.toPrecision(2)} apart at most, ${continued}`,
  );
  await context.dispose();
  await model.dispose();
}

const llama = await getLlama({ gpu: false, build: 'never', skipDownload: true, logLevel: LlamaLogLevel.error });
for (const folder of folders) await runCase(llama, folder);
await llama.dispose();
