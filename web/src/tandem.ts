// The API: load a model, make sessions of it, generate.
import { LocalChannel, WorkerChannel, type Channel } from './channel.js';
import { TandemError } from './errors.js';
import { Generation } from './generation.js';
import type { LoadEvent, Loaded, LoadRequest } from './host.js';
import { absolute, portable } from './source.js';
import type {
  Census,
  EngineInfo,
  GenerateOptions,
  KernelTime,
  LoadOptions,
  Location,
  Message,
  Plan,
  PlanOptions,
  Prompt,
} from './types.js';

export const Tandem = {
  /**
   * Loads an artifact: a folder's URL, or a folder that the user picked. All or nothing. Errors: not_found, io,
   * hash_mismatch, malformed_artifact, ... for its files and the engine's, invalid_argument for an option,
   * limit_exceeded for what the adapter does not allow, no_adapter, out_of_memory, device_lost; an AbortError
   * where `signal` ended it.
   */
  async load(location: Location, options: LoadOptions = {}): Promise<Model> {
    const { onProgress, onWarning = console.warn } = options;
    const on = (event: LoadEvent) => ('progress' in event ? onProgress?.(event.progress) : onWarning(event.warning));
    const channel = openChannel(options);
    try {
      const request = loadRequest(location, options);
      return new Model(channel, await channel.call('load', request, { signal: options.signal, on }));
    } catch (error) {
      channel.close();
      throw error;
    }
  },

  /** What a load would need and what the adapter allows. Reads the manifest alone. Errors as for load. */
  async plan(location: Location, options: PlanOptions = {}): Promise<Plan> {
    const channel = openChannel(options);
    try {
      const request = { ...loadRequest(location, options), cache: 'none' as const };
      return await channel.call('plan', request, { signal: options.signal });
    } finally {
      channel.close();
    }
  },
};

/** A loaded model. Its sessions share its weights. */
export class Model {
  readonly info: EngineInfo;
  /** Which engine module runs it, and of which version. */
  readonly engine: Omit<Loaded, 'info'>;
  readonly #channel: Channel;

  /** Models come from Tandem.load. */
  constructor(channel: Channel, { info, ...engine }: Loaded) {
    this.#channel = channel;
    this.info = info;
    this.engine = engine;
  }

  /** A timeline of its own. Its KV cache is allocated at the first use, which may fail with out_of_memory. */
  session(): Session {
    return new Session(this.#channel);
  }

  /** The ids of a raw text or of a whole conversation. */
  encode(prompt: string | readonly Message[]): Promise<number[]> {
    return this.#channel.call('encode', { prompt });
  }

  /** Counts of GPU buffers, pipelines, submissions and wasm memory. */
  census(): Promise<Census> {
    return this.#channel.call('census', undefined);
  }

  /** Frees everything on the GPU and ends the worker; generations that run end as aborted. Never an error. */
  async dispose(): Promise<void> {
    await this.#channel.call('dispose', undefined).catch(() => {});
    this.#channel.close();
  }
}

/** One timeline: what was said so far, and its KV cache. Sessions of a model may generate side by side. */
export class Session {
  readonly #channel: Channel;
  #id: Promise<number> | undefined;

  /** Sessions come from Model.session. */
  constructor(channel: Channel) {
    this.#channel = channel;
  }

  /**
   * Starts an answer. Errors, from the loop over it and from its result: context_exceeded for a prompt longer than
   * the context, invalid_argument for an option or while another answer of this session is being written,
   * malformed_text, device_lost.
   */
  generate(prompt: Prompt, { signal, ...options }: GenerateOptions = {}): Generation {
    const controller = new AbortController();
    const abort = () => controller.abort();
    if (signal?.aborted) abort();
    signal?.addEventListener('abort', abort, { once: true });
    return new Generation(async (take) => {
      try {
        const request = { session: await this.#opened(), prompt, options };
        return await this.#channel.call('generate', request, {
          signal: controller.signal,
          on: take,
        });
      } finally {
        signal?.removeEventListener('abort', abort);
      }
    }, abort);
  }

  /** Empties the timeline at once; the next answer is as in a new session. */
  async reset(): Promise<void> {
    if (this.#id) await this.#channel.call('reset', { session: await this.#id });
  }

  /** The timeline: the last prompt and what was generated after it. */
  async ids(): Promise<number[]> {
    return this.#id ? this.#channel.call('ids', { session: await this.#id }) : [];
  }

  /** Profile builds: the times of each kernel since the last call. */
  async times(): Promise<KernelTime[]> {
    return this.#id ? this.#channel.call('times', { session: await this.#id }) : [];
  }

  /** Frees its KV cache. */
  async close(): Promise<void> {
    if (this.#id) await this.#channel.call('close', { session: await this.#id });
  }

  #opened(): Promise<number> {
    return (this.#id ??= this.#channel.call('session', undefined).catch((error: unknown) => {
      this.#id = undefined;
      throw error;
    }));
  }
}

function openChannel({ worker, gpu, ...options }: LoadOptions): Channel {
  const ownGpu = [gpu, options.device, options.adapter].some((own) => own !== undefined);
  if (worker && ownGpu) {
    throw new TandemError('invalid_argument', 'gpu, device and adapter need worker: false');
  }
  return (worker ?? (!ownGpu && typeof Worker === 'function')) ? new WorkerChannel() : new LocalChannel();
}

function loadRequest(location: Location, options: LoadOptions): LoadRequest {
  const { signal: _, onProgress: _p, onWarning: _w, worker: _worker, ...data } = options;
  const stored = typeof navigator !== 'undefined' && 'storage' in navigator;
  const engine = absolute(options.engine ?? new URL('./engine/', import.meta.url)).href;
  return {
    cache: stored ? 'opfs' : 'none',
    ...data,
    ...(options.release && { release: absolute(options.release).href }),
    location: portable(location),
    engine: engine.endsWith('/') ? engine : `${engine}/`,
  };
}
