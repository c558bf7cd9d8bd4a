// Ranges of files out of one transfer for as many of them as follow each other, which goes on where
// it broke off.
import { TandemError, isAbort } from './errors.js';
import type { Source } from './source.js';

/** How often a transfer that brings nothing new is tried again, and the first pause; each is twice the last. */
export interface Retry {
  attempts: number;
  pauseMs: number;
}

export class Download {
  readonly #source: Source;
  readonly #retry: Retry;
  #transfer: Transfer | undefined;
  #queue: Promise<unknown> = Promise.resolve();

  constructor(source: Source, retry: Retry = { attempts: 5, pauseMs: 500 }) {
    this.#source = source;
    this.#retry = retry;
  }

  /** The bytes of a range, unverified. Calls queue. Errors: not_found, io; the signal's reason. */
  read(file: string, offset: number, length: number, signal?: AbortSignal) {
    const result = this.#queue.then(() => this.#read(file, offset, length, signal));
    this.#queue = result.catch(() => {});
    return result;
  }

  /** Ends the transfer. */
  close(): void {
    this.#transfer?.cancel();
    this.#transfer = undefined;
  }

  async #read(file: string, offset: number, length: number, signal?: AbortSignal) {
    const bytes = new Uint8Array(length);
    let filled = 0;
    for (let failures = 0; filled < length;) {
      signal?.throwIfAborted();
      const before = filled;
      try {
        const transfer = await this.#at(file, offset + filled, signal);
        while (filled < length) filled += await transfer.read(bytes.subarray(filled));
      } catch (error) {
        this.close();
        failures = filled > before ? 1 : failures + 1;
        if (!mayPass(error) || failures > this.#retry.attempts) throw error;
        await pause(this.#retry.pauseMs * 2 ** (failures - 1), signal);
      }
    }
    return bytes;
  }

  async #at(file: string, offset: number, signal?: AbortSignal): Promise<Transfer> {
    if (!this.#transfer?.isAt(file, offset)) {
      this.close();
      this.#transfer = new Transfer(file, offset, await this.#source.open(file, offset, signal));
    }
    return this.#transfer!;
  }
}

// What is missing stays so; what broke may work the next time.
function mayPass(error: unknown): boolean {
  return error instanceof TandemError && error.code === 'io';
}

class Transfer {
  readonly #file: string;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>;
  #position: number;
  #rest = new Uint8Array(0);

  constructor(file: string, position: number, body: ReadableStream<Uint8Array<ArrayBuffer>>) {
    this.#file = file;
    this.#position = position;
    this.#reader = body.getReader();
  }

  isAt(file: string, offset: number): boolean {
    return file === this.#file && offset === this.#position;
  }

  // Fills the beginning of `into` and says how much of it.
  async read(into: Uint8Array): Promise<number> {
    if (this.#rest.length === 0) this.#rest = await this.#chunk();
    const part = this.#rest.subarray(0, into.length);
    into.set(part);
    this.#rest = this.#rest.subarray(part.length);
    this.#position += part.length;
    return part.length;
  }

  cancel(): void {
    this.#reader.cancel().catch(() => {});
  }

  async #chunk(): Promise<Uint8Array<ArrayBuffer>> {
    try {
      const { done, value } = await this.#reader.read();
      if (!done) return value;
    } catch (error) {
      if (isAbort(error)) throw error;
      const { message } = error as Error;
      throw new TandemError('io', `${this.#file} broke off at byte ${this.#position}: ${message}`);
    }
    throw new TandemError('io', `${this.#file} ends at byte ${this.#position}, too early`);
  }
}

function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => (clearTimeout(timer), reject(signal!.reason));
    const timer = setTimeout(() => (signal?.removeEventListener('abort', stop), resolve()), ms);
    signal?.addEventListener('abort', stop, { once: true });
  });
}
