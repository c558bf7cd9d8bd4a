// What was verified once is kept, and what is kept is never believed.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { pattern, pieces, sha256 } from './support/bytes.mjs';
import { FakeFolder, installStorage } from './support/folder.mjs';
import { load } from './support/package.mjs';
import { serve } from './support/server.mjs';

const { Artifact } = await load('artifact.js');
const { clearCache, openCache } = await load('cache.js');
const { openSource } = await load('source.js');

const shard = pattern(10_000);
const ranges = pieces('shard', shard, 1000);
let server, root, warnings;
before(async () => {
  server = await serve({}, new Map([['/m/shard', shard]]));
});
after(() => server.close());
beforeEach(() => {
  for (const fault of Object.keys(server.faults)) delete server.faults[fault];
  server.requests.length = 0;
  root = installStorage();
  warnings = [];
});

async function open(options = {}) {
  return new Artifact(openSource(`${server.origin}/m`), {
    cache: await openCache(),
    warn: (message) => warnings.push(message),
    retry: { attempts: 0, pauseMs: 1 },
    ...options,
  });
}

// Reads as the engine does: verifies, and asks again where a range is refused.
async function loadAll(artifact, wanted = ranges) {
  const parts = [];
  for (const range of wanted) parts.push(await artifact.verify(range));
  artifact.close();
  return Buffer.concat(parts);
}

const cached = async () => (await root.getDirectoryHandle('tandem-pieces')).entries;

test('the second load asks for nothing', async () => {
  assert.deepEqual(await loadAll(await open()), Buffer.from(shard));
  assert.deepEqual([...(await cached()).keys()].sort(), ranges.map((range) => range.sha256).sort());
  server.requests.length = 0;
  assert.deepEqual(await loadAll(await open()), Buffer.from(shard));
  assert.equal(server.requests.length, 0);
});

test('a load that was interrupted goes on with the pieces that it has', async () => {
  Object.assign(server.faults, { cut: 5500, cuts: 1 });
  await assert.rejects(open().then(loadAll), { code: 'io' });
  assert.equal((await cached()).size, 5);
  server.requests.length = 0;
  assert.deepEqual(await loadAll(await open()), Buffer.from(shard));
  assert.deepEqual(server.requests, [{ path: '/m/shard', range: 'bytes=5000-' }]);
});

for (const [what, damage] of [
  ['zeros', (bytes) => bytes.fill(0)],
  ['one changed bit', (bytes) => ((bytes[500] ^= 1), bytes)],
  ['half of it', (bytes) => bytes.subarray(0, 500)],
  ['nothing', () => new Uint8Array(0)],
]) {
  test(`an entry that holds ${what} is fetched again`, async () => {
    await loadAll(await open());
    const entries = await cached();
    const name = ranges[3].sha256;
    entries.set(name, damage(entries.get(name).slice()));
    server.requests.length = 0;
    assert.deepEqual(await loadAll(await open()), Buffer.from(shard));
    assert.deepEqual(server.requests, [{ path: '/m/shard', range: 'bytes=3000-' }]);
    assert.equal(sha256(entries.get(name)), name);
  });
}

test('a full quota is one warning, and the load goes on', async () => {
  root.quota = 3500;
  assert.deepEqual(await loadAll(await open()), Buffer.from(shard));
  assert.equal((await cached()).size, 3);
  assert.equal(warnings.length, 1);
  assert.match(warnings[0], /not kept.*QuotaExceededError/);
});

test('a damaged download is tried once more, then refused', async () => {
  let damaged = 1;
  server.faults.change = (path, bytes) => (damaged-- > 0 ? bytes.map((byte) => byte ^ 1) : bytes);
  assert.deepEqual(await loadAll(await open(), [ranges[0]]), Buffer.from(shard.subarray(0, 1000)));

  server.faults.change = (path, bytes) => bytes.map((byte) => byte ^ 1);
  await assert.rejects(loadAll(await open(), [ranges[1]]), {
    code: 'hash_mismatch',
    message: new RegExp(`shard of .*expected sha256 ${ranges[1].sha256}, found`),
  });
  assert.ok(!(await cached()).has(ranges[1].sha256));
});

test('without a cache nothing is kept', async () => {
  assert.deepEqual(await loadAll(await open({ cache: undefined })), Buffer.from(shard));
  assert.equal((await cached()).size, 0);
});

test('pieces of the same bytes are kept once', async () => {
  server.files.set('/m/zeros', new Uint8Array(5000));
  await loadAll(await open(), pieces('zeros', new Uint8Array(5000), 1000));
  assert.equal((await cached()).size, 1);
});

test('clearing the cache empties it, twice', async () => {
  await loadAll(await open());
  await clearCache();
  await clearCache();
  assert.equal((await openCache()).has(ranges[0].sha256), false);
});

test('a manifest beyond all measure is refused', async () => {
  const endless = () => new ReadableStream({ pull: (c) => c.enqueue(new Uint8Array(1 << 20)) });
  const artifact = new Artifact({
    name: 'endless',
    open: async () => endless(),
  });
  await assert.rejects(artifact.manifest(), {
    code: 'malformed_artifact',
    message: /67108864/,
  });
});
