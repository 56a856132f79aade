// Lets llama.cpp go on with texts, always by the most probable token.
// Usage: node continue_gguf.mjs READERS FILE.gguf CONTEXT LENGTH PROMPT...
// READERS has node-llama-cpp in its node_modules. Prints a line of JSON for each prompt: it and LENGTH tokens more.
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const [readers, file, contextSize, length, ...prompts] = process.argv.slice(2);
const module = path.resolve(readers, 'node_modules/node-llama-cpp/dist/index.js');
const { getLlama, LlamaLogLevel } = await import(pathToFileURL(module));

const llama = await getLlama({ gpu: false, build: 'never', skipDownload: true, logLevel: LlamaLogLevel.error });
const model = await llama.loadModel({ modelPath: file });
const context = await model.createContext({ contextSize: Number(contextSize), threads: 1 });
const sequence = context.getSequence();
for (const prompt of prompts) {
  await sequence.clearHistory();
  const tokens = model.tokenize(prompt, false);
  const end = tokens.length + Number(length);
  for await (const token of sequence.evaluate(tokens.slice(), { temperature: 0, yieldEogToken: true })) {
    tokens.push(token);
    if (tokens.length === end) break;
  }
  console.log(JSON.stringify(model.detokenize(tokens)));
}
await llama.dispose();
