// Ranges come whole and in order, out of few transfers, whatever the connection does.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { pattern } from './support/bytes.mjs';
import { load } from './support/package.mjs';
import { serve } from './support/server.mjs';

const { Download } = await load('download.js');
const { openSource } = await load('source.js');

const file = pattern(1_000_000);
let server;
before(async () => {
  server = await serve({}, new Map([['/model/a b.bin', file]]));
});
after(() => server.close());
beforeEach(() => {
  for (const fault of Object.keys(server.faults)) delete server.faults[fault];
  server.requests.length = 0;
});

const open = (retry) => new Download(openSource(`${server.origin}/model`), retry);
const at = (offset, length) => file.subarray(offset, offset + length);

test('ranges that follow each other come out of one request', async () => {
  const download = open();
  const parts = await Promise.all([
    download.read('a b.bin', 0, 300_000),
    download.read('a b.bin', 300_000, 1),
    download.read('a b.bin', 300_001, 699_999),
  ]);
  assert.deepEqual(Buffer.concat(parts), Buffer.from(file));
  assert.equal(server.requests.length, 1);
});

test('a gap is jumped over by a request for a range', async () => {
  const download = open();
  assert.deepEqual(await download.read('a b.bin', 0, 10), at(0, 10));
  assert.deepEqual(await download.read('a b.bin', 500_000, 10), at(500_000, 10));
  assert.equal(server.requests[1].range, 'bytes=500000-');
  download.close();
});

test('a server without ranges is read past', async () => {
  server.faults.ranges = false;
  const download = open();
  assert.deepEqual(await download.read('a b.bin', 700_000, 300_000), at(700_000, 300_000));
});

test('a transfer that breaks off goes on where it was', async () => {
  Object.assign(server.faults, { cut: 200_000, cuts: 3 });
  const sent = server.bytesSent();
  const download = open({ attempts: 1, pauseMs: 1 });
  assert.deepEqual(await download.read('a b.bin', 0, 1_000_000), file);
  assert.ok(server.requests.length > 1);
  assert.ok(server.bytesSent() - sent < 2_000_000);
});

test('a transfer that brings nothing fails after the attempts', async () => {
  server.faults.status = { '/model/a b.bin': 503 };
  const failure = open({ attempts: 2, pauseMs: 1 }).read('a b.bin', 0, 10);
  await assert.rejects(failure, {
    code: 'io',
    message: /HTTP 200 or 206, found 503/,
  });
  assert.equal(server.requests.length, 3);
});

test('a file that does not exist is not asked for again', async () => {
  await assert.rejects(open().read('b.bin', 0, 10), { code: 'not_found' });
  assert.equal(server.requests.length, 1);
});

test('a file that is too short is told with the byte where it ends', async () => {
  const failure = open({ attempts: 0, pauseMs: 1 }).read('a b.bin', 999_990, 20);
  await assert.rejects(failure, { code: 'io', message: /byte 1000000/ });
});

test('a server that is not there is an error of the network', async () => {
  const failure = new Download(openSource('http://localhost:9/'), {
    attempts: 0,
    pauseMs: 1,
  });
  await assert.rejects(failure.read('x', 0, 1), { code: 'io' });
});

test('a range other than the one asked for is refused', async () => {
  server.faults.headers = { 'Content-Range': 'bytes 600000-999999/1000000' };
  const failure = open({ attempts: 0, pauseMs: 1 }).read('a b.bin', 500_000, 10);
  await assert.rejects(failure, {
    code: 'io',
    message: /asked for byte 500000/,
  });
});

test('a signal ends a pause and a read', async () => {
  server.faults.status = { '/model/a b.bin': 503 };
  const controller = new AbortController();
  const failure = open({ attempts: 1, pauseMs: 60_000 }).read('a b.bin', 0, 10, controller.signal);
  setTimeout(() => controller.abort(), 20);
  await assert.rejects(failure, { name: 'AbortError' });
});

test('a read after one that failed works', async () => {
  const download = open();
  await assert.rejects(download.read('b.bin', 0, 10), { code: 'not_found' });
  assert.deepEqual(await download.read('a b.bin', 5, 10), at(5, 10));
  download.close();
});

test('offsets beyond 4 GiB are asked for as they are', async () => {
  const offset = 2 ** 32 + 16;
  const asked = [];
  const source = {
    name: 'made up',
    open: async (name, begin) => (asked.push(begin), new Blob([at(0, 100)]).stream()),
  };
  await new Download(source).read('big', offset, 100);
  assert.deepEqual(asked, [offset]);
});
