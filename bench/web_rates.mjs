// Plain and MTP rates of the built module under Node beside those of the native engine, which `tandem bench models/atlas
// --json NATIVE` measured on the same machine just before: the same prompts, in turns, each with as many tokens.
//
//   tools/run node bench/web_rates.mjs NATIVE [--repeat 5] > bench/results/DATE-ADAPTER-atlas-web.json
//
// Dawn is as browsers have it. `--dawn-features NAMES` enables others, for software adapters to compile sooner.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { createGpu, generate, loaded, root } from '../tests/web/support/engine.mjs';
import { result } from './web_result.mjs';

// Those that `tandem bench` has by default.
const maxTokens = 64 + 1;
const warmUpMs = 200;

const { values, positionals } = parseArgs({
  options: { repeat: { type: 'string', default: '5' }, 'dawn-features': { type: 'string' } },
  allowPositionals: true,
});
const native = JSON.parse(await readFile(positionals[0]));
const source = await readFile(new URL('src/engine/prompt_sets.cpp', root), 'utf8');

/** The prompts of a set of `tandem bench`, encoded. */
function promptsOf(name) {
  const [, chat, list] = new RegExp(`\\{"${name}", (true|false), (\\w+)\\}`).exec(source);
  const [, texts] = new RegExp(`${list}\\[\\] = \\{([^}]*)\\}`).exec(source);
  const encode = (text) =>
    chat === 'true' ? engine.encodeChat([{ role: 'user', content: text }]) : engine.encode(text);
  return { chat: chat === 'true', prompts: [...texts.matchAll(/"([^"]*)"/g)].map(([, text]) => encode(text)) };
}

/** All prompts of a set once. The first token of each belongs to its prefill. */
async function pass({ prompts, chat }, mtp) {
  const sum = { ids: [], tokens: 0, rounds: 0, drafted: [0, 0], accepted: [0, 0], ms: 0 };
  for (const prompt of prompts) {
    session.reset();
    const options = { maxTokens, ignoreEos: !chat, sampling: { temperature: 0 }, mtp };
    const { ids, stats } = await generate(session, prompt, options);
    sum.ids.push(ids);
    sum.tokens += stats.generatedTokens - 1;
    sum.rounds += stats.rounds - 1;
    for (const place of [0, 1]) {
      sum.drafted[place] += stats.drafted[place];
      sum.accepted[place] += stats.accepted[place];
    }
    sum.ms += stats.decodeMs;
  }
  return sum;
}

function spread(samples) {
  const sorted = [...samples].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const median = sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  return { tokens_per_second: samples, median, min: sorted[0], max: sorted.at(-1) };
}

async function measure({ prompts, plain: nativePlain, mtp: nativeMtp }) {
  const set = promptsOf(prompts);
  const rates = { off: [], on: [] };
  const passes = {};
  const start = performance.now();
  while (rates.on.length < Number(values.repeat)) {
    const warm = performance.now() - start >= warmUpMs;
    for (const mtp of ['off', 'on']) {
      passes[mtp] = await pass(set, mtp);
      if (warm) rates[mtp].push((1e3 * passes[mtp].tokens) / passes[mtp].ms);
    }
    assert.deepEqual(passes.on.ids, passes.off.ids);
  }
  const { tokens, rounds, drafted, accepted } = passes.on;
  const [plain, mtp] = [spread(rates.off), spread(rates.on)];
  return {
    prompts,
    plain,
    mtp,
    ratio: mtp.median / plain.median,
    drafted,
    accepted,
    acceptance: (accepted[0] + accepted[1]) / (drafted[0] + drafted[1]),
    tokens,
    rounds,
    tokens_per_round: tokens / rounds,
    native: { plain: nativePlain, mtp: nativeMtp },
  };
}

const features = values['dawn-features'];
const engine = await loaded('gemma4_mtp', { gpu: createGpu(features) });
const session = await engine.session();
const library = JSON.parse(await readFile(new URL('web/node_modules/webgpu/package.json', root)));
const info = { ...engine.info, library: `npm webgpu ${library.version} in Node ${process.version}` };
assert.equal(info.artifact, native.artifact.digest, 'the native result is of another artifact');
const rows = [];
for (const row of native.mtp) rows.push(await measure(row));
const command = `node bench/web_rates.mjs NATIVE${features ? ` --dawn-features ${features}` : ''}`;
console.log(JSON.stringify({ ...result('web', command, native.commit, info), mtp: rows }, null, 2));
await engine.unload();
process.exit(0);
