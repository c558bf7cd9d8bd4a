// release.json binds an artifact and the eight engine files; what differs is refused.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sha256 } from './support/bytes.mjs';
import { canonical, fakeEngineFiles, fakeRelease } from './support/fake_release.mjs';
import { load } from './support/package.mjs';

const { checkFile, moduleFile, parseRelease } = await load('release.js');

const hash = 'a'.repeat(64);
const release = () => fakeRelease(fakeEngineFiles(), hash);

test('the eight files have the names that the build gives them', () => {
  assert.equal(moduleFile('plain', 'wall', 'js'), 'webgpu_llama.js');
  assert.equal(moduleFile('mtp', 'profile', 'wasm'), 'gemma4_mtp.profile.wasm');
});

test('a whole release is taken', () => {
  assert.deepEqual(parseRelease(canonical(release())), release());
});

for (const [what, code, change] of [
  ['another schema', 'bad_value', (r) => (r.schema = 'tandem.artifact')],
  ['a later version', 'bad_value', (r) => (r.schema_version = 2)],
  ['a missing target', 'missing_key', (r) => delete r.targets.mtp],
  ['a missing build', 'missing_key', (r) => delete r.targets.mtp.wall],
  ['a missing file', 'missing_key', (r) => delete r.targets.plain.wall.wasm],
  ['an extra file', 'unknown_key', (r) => (r.targets.plain.wall.map = r.targets.plain.wall.js)],
  ['an extra target', 'unknown_key', (r) => (r.targets.other = r.targets.mtp)],
  ['an extra key', 'unknown_key', (r) => (r.note = '')],
  ['swapped targets', 'bad_value', (r) => ([r.targets.plain, r.targets.mtp] = [r.targets.mtp, r.targets.plain])],
  ['a profile file in the wall build', 'bad_value', (r) => (r.targets.mtp.wall = r.targets.mtp.profile)],
  ['a hash in capitals', 'bad_value', (r) => (r.targets.mtp.wall.js.sha256 = hash.toUpperCase())],
  ['no bytes', 'bad_value', (r) => (r.targets.mtp.wall.js.bytes = 0)],
  ['bytes as text', 'bad_value', (r) => (r.targets.mtp.wall.js.bytes = '10')],
  ['a file that leaves the folder', 'bad_value', (r) => (r.targets.mtp.wall.js.file = '../x.js')],
  ['a number for the engine', 'wrong_type', (r) => (r.engine = 1)],
  ['a list of targets', 'wrong_type', (r) => (r.targets = [])],
  ['no artifact', 'bad_value', (r) => (r.artifact = null)],
]) {
  test(`${what} is refused`, () => {
    const changed = release();
    change(changed);
    assert.throws(() => parseRelease(canonical(changed)), {
      code,
      message: /^release\.json/,
    });
  });
}

test('text that is not canonical or not JSON is refused', () => {
  assert.throws(() => parseRelease(JSON.stringify(release())), {
    code: 'bad_value',
  });
  assert.throws(() => parseRelease('{'), { code: 'malformed_json' });
  assert.throws(() => parseRelease('null\n'), { code: 'wrong_type' });
});

test('a changed or shortened file is refused, with both values', async () => {
  const bytes = new TextEncoder().encode('export {};');
  const bound = { file: 'x.js', bytes: 10, sha256: sha256(bytes) };
  await checkFile(bytes, bound);
  await assert.rejects(checkFile(bytes.subarray(1), bound), {
    code: 'hash_mismatch',
    message: /10 bytes, found 9/,
  });
  await assert.rejects(
    checkFile(
      bytes.map((byte) => byte ^ 1),
      bound,
    ),
    { code: 'hash_mismatch' },
  );
});
