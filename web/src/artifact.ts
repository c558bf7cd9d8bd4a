// An artifact's files as the engine asks for them: out of the cache where they are in it, otherwise
// downloaded. The engine verifies every range before it uses it, and says here what it found.
import { Download, type Retry } from './download.js';
import { TandemError } from './errors.js';
import { sha256 } from './sha256.js';
import type { Cache } from './cache.js';
import { readWhole, type Source } from './source.js';
import type { Range, Shards } from '../low_level.js';

/** Told once what went wrong with the cache; the load goes on without it. */
export type Warn = (message: string) => void;

export class Artifact implements Shards {
  readonly #download: Download;
  readonly #cache: Cache | undefined;
  readonly #warn: Warn;
  #full = false;
  // Ranges that were read out of the cache, and those that were downloaded a second time.
  readonly #cached = new Set<string>();
  readonly #again = new Set<string>();

  constructor(
    readonly source: Source,
    options: { cache?: Cache | undefined; warn?: Warn; retry?: Retry } = {},
  ) {
    this.#download = new Download(source, options.retry);
    this.#cache = options.cache;
    this.#warn = options.warn ?? (() => {});
  }

  /** manifest.json, which binds all other files. */
  async manifest(signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
    const name = 'manifest.json';
    return readWhole(await this.source.open(name, 0, signal), `${name} of ${this.source.name}`);
  }

  /** A range, verified here: the tokenizer's file, which the engine takes as bytes. */
  async verify(range: Range, signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
    for (;;) {
      const bytes = await this.read(range, signal);
      const found = await sha256(bytes);
      if (found === range.sha256) {
        await this.verified(range, bytes);
        return bytes;
      }
      if (await this.refused(range)) continue;
      throw new TandemError(
        'hash_mismatch',
        `${range.file} of ${this.source.name}: expected sha256 ${range.sha256}, found ${found}`,
      );
    }
  }

  async read(range: Range, signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
    if (this.#cache?.has(range.sha256)) {
      const bytes = await this.#cache.read(range.sha256);
      if (bytes?.length === range.bytes) {
        this.#cached.add(range.sha256);
        return bytes;
      }
      await this.#cache.remove(range.sha256);
    }
    return this.#download.read(range.file, range.offset, range.bytes, signal);
  }

  async verified(range: Range, bytes: Uint8Array): Promise<void> {
    if (!this.#cache || this.#full || this.#cache.has(range.sha256)) return;
    try {
      await this.#cache.write(range.sha256, bytes as Uint8Array<ArrayBuffer>);
    } catch (error) {
      this.#full = true;
      const { name, message } = error as Error;
      this.#warn(`The weights are not kept for the next time: ${name}: ${message}`);
    }
  }

  /** A damaged entry of the cache is dropped, and a damaged download tried again once. */
  async refused(range: Range): Promise<boolean> {
    if (this.#cached.delete(range.sha256)) {
      await this.#cache?.remove(range.sha256);
      return true;
    }
    if (this.#again.has(range.sha256)) return false;
    this.#again.add(range.sha256);
    return true;
  }

  close(): void {
    this.#download.close();
  }
}
