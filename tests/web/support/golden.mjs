// What Hugging Face transformers computes for the atlas, which the native engine is held against, too.
import { readFile } from 'node:fs/promises';

/** Tensors of int32 in a safetensors file, by name. */
export async function goldenIds(file) {
  const bytes = await readFile(new URL(`../../golden/${file}`, import.meta.url));
  const headerBytes = Number(bytes.readBigUInt64LE(0));
  const header = JSON.parse(bytes.toString('utf8', 8, 8 + headerBytes));
  const ids = (name) => {
    const [begin, end] = header[name].data_offsets.map((offset) => 8 + headerBytes + offset);
    return Array.from({ length: (end - begin) / 4 }, (_, i) => bytes.readInt32LE(begin + 4 * i));
  };
  return { names: Object.keys(header), ids };
}

async function prompts(file) {
  const { ids } = await goldenIds(file);
  return (prompt) => ({ ids: ids(`${prompt}.ids`), greedy: ids(`${prompt}.greedy`) });
}

/** A prompt's ids and the 64 tokens that follow greedily. */
export const golden = await prompts('target.safetensors');
/** The same with int8 activations. Of `profile` no token is near another, so all 64 hold on every adapter. */
export const goldenInt8 = await prompts('int8.safetensors');
