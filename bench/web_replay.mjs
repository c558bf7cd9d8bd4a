// The CPU cost of a dispatch when a submission is replayed from linear memory, in Chromium (default) or Node.
//
//   node bench/web_replay.mjs [--rounds 200] > bench/results/DATE-ADAPTER-atlas-replay.json
//   tools/run node bench/web_replay.mjs --node
//
// The times are those of `tandem_gpu_submit` over the rounds of one generation, each divided by its dispatches.
import { execFileSync } from 'node:child_process';
import { parseArgs } from 'node:util';
import { launch, openPage } from '../tests/web/support/browser.mjs';
import { serve } from '../tests/web/support/server.mjs';
import { result } from './web_result.mjs';

/** Loads the atlas with a module, and times each submission of a plain generation. Runs where WebGPU is. */
async function measure(create, options, file, rounds) {
  const samples = [];
  const instantiate = WebAssembly.instantiate;
  WebAssembly.instantiate = async (bytes, imports) => {
    const module = Object.values(imports).find((functions) => functions.tandem_gpu_submit);
    const submit = module.tandem_gpu_submit;
    let memory;
    module.tandem_gpu_submit = (words) => {
      const dispatches = new Uint32Array(memory.buffer)[(words >>> 2) + 1];
      const start = performance.now();
      submit(words);
      samples.push((1e3 * (performance.now() - start)) / dispatches);
    };
    const made = await instantiate(bytes, imports);
    memory = made.instance.exports.memory;
    return made;
  };
  const engine = await create(options);
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
  const submissions = after.submissions - before.submissions;
  const perSubmission = (key) => (after[key] - before[key]) / submissions;
  samples.sort((a, b) => a - b);
  const at = (share) => samples[Math.floor(share * (samples.length - 1))];
  return {
    info,
    submissions,
    dispatches_per_submission: perSubmission('dispatches'),
    calls_per_submission: perSubmission('crossings'),
    us_per_dispatch: { samples, p10: at(0.1), median: at(0.5), p90: at(0.9) },
  };
}

const root = new URL('../', import.meta.url);

async function inNode(rounds) {
  const { atlasFolder, factory, gpu } = await import('../tests/web/support/engine.mjs');
  const { readFile } = await import('node:fs/promises');
  const file = async (name) => new Uint8Array(await readFile(new URL(name, atlasFolder)));
  return measure(await factory('webgpu_llama'), { gpu }, file, rounds);
}

// The server's pages are isolated, and so have the finer clock.
async function inChromium(rounds) {
  const server = await serve({ '/': root });
  const browser = await launch();
  try {
    const page = await openPage(await browser.newContext(), `${server.origin}/web/demo/icon.svg`);
    page.setDefaultTimeout(0);
    return await page.evaluate(`(async () => {
      const { default: create } = await import('/build/web/webgpu_llama.js');
      const file = async (name) => new Uint8Array(await (await fetch('/models/atlas/' + name)).arrayBuffer());
      return (${measure})(create, {}, file, ${rounds});
    })()`);
  } finally {
    await browser.close();
    await server.close();
  }
}

const { values } = parseArgs({
  options: { node: { type: 'boolean', default: false }, rounds: { type: 'string', default: '200' } },
});
const { info, ...figures } = await (values.node ? inNode : inChromium)(Number(values.rounds));
const command = `node bench/web_replay.mjs${values.node ? ' --node' : ''}`;
const commit = execFileSync('git', ['describe', '--always', '--abbrev=12', '--dirty=+', '--exclude=*'], {
  encoding: 'utf8',
});
console.log(JSON.stringify({ ...result('replay', command, commit.trim(), info), ...figures }, null, 2));
process.exit(0);
