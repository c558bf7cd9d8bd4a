// Made-up files and their hashes.
import { createHash } from 'node:crypto';

export const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex');

/** Bytes that differ everywhere. */
export function pattern(length, seed = 1) {
  const bytes = new Uint8Array(length);
  for (let i = 0, state = seed; i < length; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    bytes[i] = state >>> 24;
  }
  return bytes;
}

/** The ranges of a file in pieces, as a load plan has them. */
export function pieces(file, bytes, pieceBytes) {
  const ranges = [];
  for (let offset = 0; offset < bytes.length; offset += pieceBytes) {
    const piece = bytes.subarray(offset, offset + pieceBytes);
    ranges.push({ file, offset, bytes: piece.length, sha256: sha256(piece) });
  }
  return ranges;
}
