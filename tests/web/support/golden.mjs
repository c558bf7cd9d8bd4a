// What Hugging Face transformers computes for the atlas, which the native engine is held against, too.
import { readFile } from 'node:fs/promises';

const file = await readFile(new URL('../../golden/target.safetensors', import.meta.url));
const headerBytes = Number(file.readBigUInt64LE(0));
const header = JSON.parse(file.subarray(8, 8 + headerBytes));

function integers(name) {
  const [begin, end] = header[name].data_offsets;
  const bytes = file.subarray(8 + headerBytes + begin, 8 + headerBytes + end);
  return Array.from({ length: bytes.length / 4 }, (_, i) => bytes.readInt32LE(4 * i));
}

/** A prompt's ids and the 64 tokens that follow greedily. */
export const golden = (prompt) => ({
  ids: integers(`${prompt}.ids`),
  greedy: integers(`${prompt}.greedy`),
});
