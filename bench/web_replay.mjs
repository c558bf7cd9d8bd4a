// What the processor does in Chromium to replay a round's dispatches from linear memory, on the software adapter.
//
//   node bench/web_replay.mjs [--rounds 1000] > bench/results/DATE-swiftshader-atlas-replay.json
//
// A sample is one `tandem_gpu_submit`: what it takes to encode, divided by the dispatches; and apart from that what it
// takes to hand over, submit and mapAsync, where Chromium may wait for its GPU process.
import { execFileSync } from 'node:child_process';
import { parseArgs } from 'node:util';
import { launch, openPage } from '../tests/web/support/browser.mjs';
import { serve } from '../tests/web/support/server.mjs';
import { result } from './web_result.mjs';

/** Loads the atlas with a module, and times each submission of a plain generation. Its text runs in a page. */
async function measure(create, file, rounds) {
  let handedOverMs = 0;
  for (const [type, method] of [
    [GPUQueue, 'submit'],
    [GPUBuffer, 'mapAsync'],
  ]) {
    const original = type.prototype[method];
    type.prototype[method] = function (...values) {
      const start = performance.now();
      const returned = original.apply(this, values);
      handedOverMs += performance.now() - start;
      return returned;
    };
  }

  const samples = [];
  const instantiate = WebAssembly.instantiate;
  WebAssembly.instantiate = async (bytes, imports) => {
    const module = Object.values(imports).find((functions) => functions.tandem_gpu_submit);
    const submit = module.tandem_gpu_submit;
    let memory;
    module.tandem_gpu_submit = (words) => {
      const dispatches = new Uint32Array(memory.buffer)[(words >>> 2) + 1];
      handedOverMs = 0;
      const start = performance.now();
      submit(words);
      const ms = performance.now() - start - handedOverMs;
      samples.push({ encode: (1e3 * ms) / dispatches, handOver: 1e3 * handedOverMs });
    };
    const made = await instantiate(bytes, imports);
    memory = made.instance.exports.memory;
    return made;
  };
  const engine = await create();
  WebAssembly.instantiate = instantiate;

  const shards = { read: async ({ file: name, offset, bytes }) => (await file(name)).slice(offset, offset + bytes) };
  const info = await engine.load(await file('manifest.json'), shards, await file('tokenizer.bin'));
  const session = await engine.session();
  session.start(engine.encode('The history of'), { maxTokens: rounds, ignoreEos: true, mtp: 'off' });
  await session.step();
  samples.length = 0;
  const before = engine.census();
  while (session.running) await session.step();
  const after = engine.census();
  await engine.unload();

  const perSubmission = (key) => (after[key] - before[key]) / samples.length;
  const spread = (key) => {
    const sorted = samples.map((sample) => sample[key]).sort((a, b) => a - b);
    const at = (share) => sorted[Math.floor(share * (sorted.length - 1))];
    return { samples: sorted, p10: at(0.1), median: at(0.5), p90: at(0.9) };
  };
  return {
    info,
    submissions: samples.length,
    dispatches_per_submission: perSubmission('dispatches'),
    calls_per_submission: perSubmission('crossings'),
    encode_us_per_dispatch: spread('encode'),
    hand_over_us_per_submission: spread('handOver'),
  };
}

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '1000' } } });
// The server's pages are isolated, and so have the finer clock.
const server = await serve({ '/': new URL('../', import.meta.url) });
const browser = await launch();
const page = await openPage(await browser.newContext(), `${server.origin}/web/demo/icon.svg`);
const { info, ...figures } = await page.evaluate(`(async () => {
  const { default: create } = await import('/build/web/webgpu_llama.js');
  const file = async (name) => new Uint8Array(await (await fetch('/models/atlas/' + name)).arrayBuffer());
  return (${measure})(create, file, ${Number(values.rounds)});
})()`);
const device = { ...info, library: `Chromium ${browser.version()}` };
await browser.close();
await server.close();

const describe = ['describe', '--always', '--abbrev=12', '--dirty=+', '--exclude=*'];
const commit = execFileSync('git', describe, { encoding: 'utf8' }).trim();
console.log(JSON.stringify({ ...result('replay', 'node bench/web_replay.mjs', commit, device), ...figures }, null, 2));
