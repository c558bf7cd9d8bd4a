// What the built modules refuse, and that nothing of it is left: damaged files, devices that are too small or lost,
// loads that are broken off.
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { atlas, atlasFolder, factory, Folder, generate, gpu, loaded } from './support/engine.mjs';

const question = [{ role: 'user', content: 'What is the capital of France?' }];
let createMtp;
let createPlain;
before(async () => {
  createMtp = await factory('gemma4_mtp');
  createPlain = await factory('webgpu_llama');
});

const load = (engine, shards = new Folder(atlasFolder)) => engine.load(atlas.manifest, shards, atlas.tokenizer);

function nothingLeft(engine) {
  const { buffers, bufferBytes } = engine.census();
  assert.deepEqual({ buffers, bufferBytes }, { buffers: 0, bufferBytes: 0 });
  assert.equal(engine.info, null);
}

// The same bytes with one bit changed.
function damaged(bytes, at) {
  const copy = Uint8Array.from(bytes);
  copy[at] ^= 1;
  return copy;
}

async function device(descriptor = {}) {
  const adapter = await gpu.requestAdapter();
  return { adapter, device: await adapter.requestDevice(descriptor) };
}

test('damaged, short and missing pieces', async () => {
  const engine = await createMtp({ gpu });
  const changes = [
    [(range, bytes) => damaged(bytes, 17), 'hash_mismatch'],
    [(range, bytes) => (range.offset > 0 ? new Uint8Array(bytes.length) : bytes), 'hash_mismatch'],
    [(range, bytes) => bytes.subarray(1), 'malformed_artifact'],
    [() => 'text', 'invalid_argument'],
  ];
  for (const [change, code] of changes) {
    await assert.rejects(load(engine, new Folder(atlasFolder, change)), { name: 'TandemError', code });
    nothingLeft(engine);
  }
  const gone = new Error('gone');
  await assert.rejects(load(engine, { read: () => Promise.reject(gone) }), gone);
  nothingLeft(engine);
});

test('a damaged piece is read once more where it came from a cache', async () => {
  const engine = await createPlain({ gpu });
  let bad = 0;
  const kept = new Set();
  const shards = new Folder(atlasFolder, (range, bytes) => (bad++ === 2 ? damaged(bytes, 0) : bytes));
  shards.refused = () => true;
  shards.verified = (range) => void kept.add(range.sha256);
  await load(engine, shards);
  const { ranges } = await engine.plan(atlas.manifest);
  assert.deepEqual(kept, new Set(ranges.map(({ sha256 }) => sha256)));
  assert.equal(shards.reads, ranges.length + 1);
  await engine.unload();

  const always = new Folder(atlasFolder, (range, bytes) => damaged(bytes, 0));
  always.refused = () => true;
  await assert.rejects(load(engine, always), { code: 'hash_mismatch' });
  nothingLeft(engine);
});

test('damaged manifests and tokenizers', async () => {
  const engine = await createMtp({ gpu });
  const shards = new Folder(atlasFolder);
  const text = new TextDecoder().decode(atlas.manifest);
  const changed = (from, to) => new TextEncoder().encode(text.replace(from, to));
  const manifests = [
    [new Uint8Array(0), 'malformed_json'],
    [new TextEncoder().encode(`${text} `), 'malformed_artifact'],
    [changed('"layout_version"', '"layout_versions"'), 'missing_key'],
    [changed('"tandem.artifact"', '"other"'), 'bad_value'],
  ];
  for (const [manifest, code] of manifests) {
    await assert.rejects(engine.load(manifest, shards, atlas.tokenizer), { code });
    await assert.rejects(engine.plan(manifest), { code });
    nothingLeft(engine);
  }
  await assert.rejects(engine.load(atlas.manifest, shards, damaged(atlas.tokenizer, 99)), { code: 'hash_mismatch' });
  nothingLeft(engine);
  const other = await createMtp({ gpu, artifact: '0'.repeat(64) });
  await assert.rejects(load(other), { code: 'hash_mismatch' });
});

test('options that are out of range', async () => {
  const plain = await createPlain({ gpu, drafts: 1 });
  await assert.rejects(load(plain), { code: 'unsupported', message: /gemma4_mtp/ });
  for (const [options, code] of [
    [{ drafts: 3 }, 'invalid_argument'],
    [{ context: 0 }, 'invalid_argument'],
    [{ kv: 'f8' }, 'bad_value'],
    [{ activations: 'int4' }, 'bad_value'],
    [{ disabledTiers: ['speed'] }, 'invalid_argument'],
  ]) {
    const engine = await createMtp({ gpu, ...options });
    await assert.rejects(load(engine), { code });
    nothingLeft(engine);
  }
});

test('no WebGPU, no adapter, no device', async () => {
  await assert.rejects(load(await createMtp({ gpu: undefined })), { code: 'no_adapter', message: /navigator\.gpu/ });
  const none = { requestAdapter: async () => null };
  await assert.rejects(load(await createMtp({ gpu: none })), { code: 'no_adapter' });
  const { adapter } = await device(); // an adapter gives one device
  await assert.rejects(load(await createMtp({ gpu, adapter })), { code: 'no_adapter' });
});

test('limits that are too small, with the numbers', async () => {
  const limits = { maxStorageBufferBindingSize: 65536 };
  const engine = await createMtp({ gpu, limits });
  const plan = await engine.plan(atlas.manifest);
  assert.equal(plan.refusal.code, 'limit_exceeded');
  assert.match(plan.refusal.message, /65536/);
  assert.equal(plan.limits.maxBindingBytes, 65536);
  assert.ok(plan.largestBuffer.bytes > 65536);
  await assert.rejects(load(engine), { code: 'limit_exceeded', message: /65536/ });
  nothingLeft(engine);
  const greedy = await createMtp({ gpu, limits: { maxBufferSize: 2 ** 50 } });
  await assert.rejects(load(greedy), { code: 'limit_exceeded', message: /1125899906842624/ });
});

test('a plan says what a load takes', async () => {
  const engine = await createMtp({ gpu });
  const plan = await engine.plan(atlas.manifest);
  assert.equal(plan.refusal, null);
  assert.deepEqual(plan.views, ['plain', 'mtp']);
  assert.equal(plan.drafts, 2);
  assert.equal(
    plan.downloadBytes,
    plan.ranges.reduce((sum, { bytes }) => sum + bytes, 0),
  );
  const without = await engine.plan(atlas.manifest, { drafts: 0, context: 512 });
  assert.equal(without.context, 512);
  assert.ok(without.downloadBytes < plan.downloadBytes);
  nothingLeft(engine);
  const seen = [];
  const watching = await createMtp({ gpu, onProgress: (progress) => seen.push(progress) });
  const info = await load(watching);
  assert.equal(info.artifact, plan.artifact);
  assert.equal(info.gpuBytes, plan.weightBytes + plan.scratchBytes + plan.sequenceBytes);
  const weights = seen.filter(({ phase }) => phase === 'weights');
  assert.equal(weights.at(-1).done, weights.at(-1).total);
  assert.ok(seen.some(({ phase, total }) => phase === 'kernels' && total > 0));
  await assert.rejects(load(watching), { code: 'invalid_argument', message: /unload/ });
  await watching.unload();
});

test('a load that is broken off', async () => {
  const reason = new Error('enough');
  for (const reads of [0, 1, 3]) {
    const controller = new AbortController();
    const engine = await createMtp({ gpu, signal: controller.signal });
    let count = 0;
    const shards = new Folder(atlasFolder, (range, bytes) => {
      if (count++ === reads) controller.abort(reason);
      return bytes;
    });
    await assert.rejects(load(engine, shards), reason);
    nothingLeft(engine);
  }
  const engine = await createMtp({ gpu });
  const loading = load(engine, { read: () => new Promise(() => {}) });
  loading.catch(() => {});
  await engine.unload();
  await assert.rejects(loading, { code: 'invalid_argument', message: /unloaded/ });
  nothingLeft(engine);
  await load(engine);
  await engine.unload();
});

test('loaded and unloaded again and again', async () => {
  const engine = await createMtp({ gpu });
  const heap = [];
  for (let i = 0; i < 4; ++i) {
    await load(engine);
    const session = await engine.session();
    await generate(session, engine.encodeChat(question), { maxTokens: 2 });
    await engine.unload();
    nothingLeft(engine);
    heap.push(engine.census().heapBytes);
    assert.throws(() => session.start([2], {}), { code: 'invalid_argument' });
    assert.throws(() => engine.encode('text'), { code: 'invalid_argument' });
  }
  assert.equal(heap[3], heap[1]);
  await engine.unload();
});

test("a caller's device is never destroyed", async () => {
  const { adapter, device: own } = await device();
  let lost = false;
  own.lost.then(() => (lost = true));
  const engine = await createPlain({ gpu, adapter, device: own });
  for (let i = 0; i < 2; ++i) {
    await load(engine);
    await generate(await engine.session(), engine.encodeChat(question), { maxTokens: 2 });
    await engine.unload();
    nothingLeft(engine);
  }
  await own.queue.onSubmittedWorkDone();
  assert.equal(lost, false);
  own.destroy();
});

test('a device that is lost while it generates', async () => {
  const { adapter, device: own } = await device();
  const engine = await createMtp({ gpu, adapter, device: own });
  await load(engine);
  const session = await engine.session();
  session.start(engine.encodeChat(question), { maxTokens: 64, ignoreEos: true });
  await session.step();
  own.destroy();
  await assert.rejects(
    async () => {
      for (;;) await session.step();
    },
    { name: 'TandemError', code: 'device_lost' },
  );
  assert.throws(() => session.start([2], {}), { code: 'device_lost' });
  await assert.rejects(engine.session(), { code: 'device_lost' });
  await engine.unload();
  nothingLeft(engine);

  const next = await loaded('gemma4_mtp');
  const { text } = await generate(await next.session(), next.encodeChat(question), {});
  assert.match(text, /Paris/);
  await next.unload();
});

test('a device that is lost while it loads', async () => {
  const { adapter, device: own } = await device();
  const engine = await createMtp({ gpu, adapter, device: own });
  const shards = new Folder(atlasFolder, (range, bytes) => {
    if (range.offset > 0) own.destroy();
    return bytes;
  });
  await assert.rejects(load(engine, shards), { code: 'device_lost' });
  nothingLeft(engine);
});
