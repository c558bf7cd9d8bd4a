// The CPU cost of a dispatch when a submission is replayed from linear memory, in Chromium (default) or Node.
//
//   node bench/web_replay.mjs [--node] [--rounds 200]
//
// Prints JSON: microseconds per dispatch of `tandem_gpu_submit` over the rounds of one generation.

/** Loads the atlas with a module, and times each submission of a plain generation. Runs where WebGPU is. */
export async function measure(create, options, files, rounds) {
  const samples = [];
  const instantiate = WebAssembly.instantiate;
  WebAssembly.instantiate = (bytes, imports) => {
    const module = Object.values(imports).find((functions) => functions.tandem_gpu_submit);
    const submit = module.tandem_gpu_submit;
    let heap = null;
    module.tandem_gpu_submit = (words) => {
      const count = new Uint32Array(heap.exports.memory.buffer)[(words >>> 2) + 1];
      const start = performance.now();
      submit(words);
      samples.push({ ms: performance.now() - start, dispatches: count });
    };
    return instantiate(bytes, imports).then((result) => {
      heap = result.instance;
      return result;
    });
  };
  const engine = await create(options);
  WebAssembly.instantiate = instantiate;
  const file = async (name) => new Uint8Array(await files(name));
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
  const us = samples.map(({ ms, dispatches }) => (1e3 * ms) / dispatches).sort((a, b) => a - b);
  const at = (share) => us[Math.floor(share * (us.length - 1))];
  return {
    adapter: info.adapter,
    rounds: after.submissions - before.submissions,
    dispatchesPerRound: (after.dispatches - before.dispatches) / (after.submissions - before.submissions),
    crossingsPerRound: (after.crossings - before.crossings) / (after.submissions - before.submissions),
    usPerDispatch: { p10: at(0.1), median: at(0.5), p90: at(0.9) },
  };
}

const root = new URL('../', import.meta.url);

async function inNode(rounds) {
  const { readFile } = await import('node:fs/promises');
  const { gpu } = await import(new URL('tests/web/support/engine.mjs', root));
  const { default: create } = await import(new URL('build/web/webgpu_llama.js', root));
  return measure(create, { gpu }, (name) => readFile(new URL(`models/atlas/${name}`, root)), rounds);
}

async function inChromium(rounds) {
  const { readFile } = await import('node:fs/promises');
  const { createServer } = await import('node:http');
  const { chromium } = await import(new URL('web/node_modules/playwright-core/index.mjs', root));
  const types = { js: 'text/javascript', mjs: 'text/javascript', wasm: 'application/wasm' };
  const server = createServer(async (request, response) => {
    const path = new URL(request.url, root).pathname.slice(1);
    const bytes = await readFile(new URL(path || 'LICENSE', root)).catch(() => null);
    // Pages that are isolated have the finer clock.
    response.writeHead(bytes ? 200 : 404, {
      'Content-Type': types[path.split('.').pop()] ?? 'text/plain',
      'Cross-Origin-Opener-Policy': 'same-origin',
      'Cross-Origin-Embedder-Policy': 'require-corp',
    });
    response.end(bytes);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: ['--headless', '--no-sandbox', '--disable-quic', '--no-first-run', '--disable-background-networking',
      '--disable-component-update', '--disable-sync', '--enable-unsafe-webgpu', '--use-webgpu-adapter=swiftshader',
      '--enable-features=Vulkan,WebGPU'],
  });
  try {
    const page = await browser.newPage();
    await page.goto(`http://127.0.0.1:${server.address().port}/`);
    return await page.evaluate(async (count) => {
      const { measure: run } = await import('/bench/web_replay.mjs');
      const { default: create } = await import('/build/web/webgpu_llama.js');
      const files = async (name) => (await fetch(`/models/atlas/${name}`)).arrayBuffer();
      return run(create, {}, files, count);
    }, rounds);
  } finally {
    await browser.close();
    server.close();
  }
}

if (typeof process === 'object' && import.meta.url === `file://${process.argv[1]}`) {
  const at = process.argv.indexOf('--rounds');
  const rounds = at > 0 ? Number(process.argv[at + 1]) : 200;
  const run = process.argv.includes('--node') ? inNode : inChromium;
  console.log(JSON.stringify(await run(rounds), null, 2));
  process.exit(0);
}
