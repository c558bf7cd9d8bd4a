// SHA-256 by WebCrypto, as the 64 hexadecimal digits that manifests have.
import { TandemError } from './errors.js';

export async function sha256(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  if (!globalThis.crypto?.subtle) {
    throw new TandemError('unsupported', 'crypto.subtle is missing: serve the page by https, or from localhost');
  }
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

export function isSha256(text: unknown): text is string {
  return typeof text === 'string' && /^[0-9a-f]{64}$/.test(text);
}
