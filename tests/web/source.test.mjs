// Artifacts come from URLs and from picked folders.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeFolder } from './support/folder.mjs';
import { load } from './support/package.mjs';

const { openSource, portable, readWhole } = await load('source.js');
const text = async (body) => new Response(body).text();

test('a picked folder gives its files from any byte on', async () => {
  const folder = new FakeFolder();
  folder.entries.set('a', new TextEncoder().encode('hello'));
  assert.equal(await text(await openSource(folder).open('a', 1)), 'ello');
  await assert.rejects(openSource(folder).open('b', 0), { code: 'not_found' });
});

test('a list of files is a folder', async () => {
  const source = openSource([new File(['hello'], 'a')]);
  assert.equal(await text(await source.open('a', 2)), 'llo');
  await assert.rejects(source.open('b', 0), {
    code: 'not_found',
    message: /b is not in/,
  });
});

test('a URL is one with or without a slash', () => {
  assert.equal(openSource('http://x/m').name, 'http://x/m/');
  assert.equal(openSource(new URL('http://x/m/?key=1')).name, 'http://x/m/?key=1');
});

test('what is no URL is refused', () => {
  assert.throws(() => portable('models/atlas'), { code: 'invalid_argument' });
});

test('a small file that does not end is refused and let go', async () => {
  const chunk = new Uint8Array(1 << 20);
  const seen = { chunks: 0, cancelled: false };
  const body = new ReadableStream({
    pull(controller) {
      seen.chunks++;
      controller.enqueue(chunk);
    },
    cancel: () => void (seen.cancelled = true),
  });
  await assert.rejects(readWhole(body, 'manifest.json'), {
    code: 'malformed_artifact',
    message: /^manifest\.json: expected at most 67108864 bytes/,
  });
  assert.ok(seen.cancelled && seen.chunks <= 66, `${seen.chunks} chunks`);
});
