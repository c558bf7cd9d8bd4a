// Plain and MTP rates of the built modules under Node, interleaved; `tandem bench` gives the native engine's.
//
//   tools/run node bench/web_rates.mjs [--tokens 128] [--runs 5]
//
// Prints JSON: tokens per second of decoding, every sample and the median, for each kind of text.
import { parseArgs } from 'node:util';
import { generate, loaded } from '../tests/web/support/engine.mjs';

const { values } = parseArgs({
  options: { tokens: { type: 'string', default: '128' }, runs: { type: 'string', default: '5' } },
});
const maxTokens = Number(values.tokens);
const runs = Number(values.runs);
const kinds = {
  'free text': (engine) => engine.encode('In the beginning of the year, the people of the island'),
  profile: (engine) => engine.encodeChat([{ role: 'user', content: 'Tell me about Portugal.' }]),
};

const engine = await loaded('gemma4_mtp');
const session = await engine.session();
const median = (samples) => [...samples].sort((a, b) => a - b)[Math.floor(samples.length / 2)];
const results = {};
for (const [kind, encode] of Object.entries(kinds)) {
  const prompt = encode(engine);
  const samples = { off: [], on: [] };
  let acceptance = 0;
  // The first run warms up.
  for (let run = 0; run <= runs; ++run) {
    for (const mtp of ['off', 'on']) {
      session.reset();
      const { stats } = await generate(session, prompt, { maxTokens, ignoreEos: true, sampling: { temperature: 0 }, mtp });
      if (run > 0) samples[mtp].push(stats.decodeTokensPerSecond);
      if (mtp === 'on') acceptance = stats.acceptance;
    }
  }
  results[kind] = {
    plain: { samples: samples.off, median: median(samples.off) },
    mtp: { samples: samples.on, median: median(samples.on), acceptance },
  };
}
const { adapter, artifact, kernelClosure, software } = engine.info;
console.log(JSON.stringify({ engine: engine.version, adapter, software, artifact, kernelClosure, maxTokens, results }, null, 2));
await engine.unload();
process.exit(0);
