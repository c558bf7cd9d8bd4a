// The package's error codes are the engine's.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { load } from './support/package.mjs';

const { TandemError, errorMeanings, fromErrorData, toErrorData } = await load('errors.js');

test('codes are those of include/tandem/error.h, in its order', async () => {
  const header = await readFile(new URL('../../include/tandem/error.h', import.meta.url), 'utf8');
  const codes = /enum class ErrorCode \{([^}]*)\}/.exec(header)[1];
  assert.deepEqual(
    Object.keys(errorMeanings),
    [...codes.matchAll(/^ *(\w+),/gm)].map((match) => match[1]),
  );
});

test('errors keep code and message on their way through a worker', () => {
  const found = fromErrorData(structuredClone(toErrorData(new TandemError('io', 'cut'))));
  assert.ok(found instanceof TandemError);
  assert.equal(found.code, 'io');
  assert.equal(found.message, 'cut');
});

test("an engine module's own errors become the package's", () => {
  const error = Object.assign(new Error('gone'), {
    name: 'TandemError',
    code: 'device_lost',
  });
  assert.equal(fromErrorData(toErrorData(error)).code, 'device_lost');
});

test('a code that is none is a defect', () => {
  const error = Object.assign(new Error('odd'), {
    name: 'TandemError',
    code: 'toString',
  });
  assert.equal(toErrorData(error).code, 'internal');
  assert.equal(toErrorData('text').message, 'text');
});

test('an abort stays an AbortError', () => {
  const error = fromErrorData(toErrorData(new DOMException('stop', 'AbortError')));
  assert.equal(error.name, 'AbortError');
});
