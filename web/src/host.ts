// The engine's side of the API: one loaded model and its sessions, in the thread where it runs. Every
// method takes and gives plain data, so that a worker can be in between (channel.ts).
import { Artifact } from './artifact.js';
import { openCache, type Cache } from './cache.js';
import { createEngine, fetchRelease } from './engine_module.js';
import { TandemError } from './errors.js';
import { openSource } from './source.js';
import type { Engine, EngineInfo, EngineOptions, Plan, Range, Session } from '../low_level.js';
import type {
  Census,
  GenerateOptions,
  GenerateStats,
  Generation,
  KernelTime,
  LoadOptions,
  Location,
  Progress,
  Prompt,
} from './types.js';

/** The part of LoadOptions that is data, with URLs that are absolute. */
export type LoadRequest = Omit<LoadOptions, 'signal' | 'onProgress' | 'onWarning' | 'worker'> & {
  location: Location;
  engine: string;
};

export type LoadEvent = { progress: Progress } | { warning: string };

export interface Loaded {
  info: EngineInfo;
  version: string;
  target: 'plain' | 'mtp';
  profile: boolean;
}

export interface GenerateRequest {
  session: number;
  prompt: Prompt;
  options: Omit<GenerateOptions, 'signal'>;
}

/** Text may be empty, after a round that completes no character. */
export interface Piece {
  text: string;
  stats: GenerateStats;
}

/** What comes with a call: events on the way to its result, and the caller's wish to end it. */
export interface Call<Event> {
  emit(event: Event): void;
  signal: AbortSignal;
}

export class Host {
  #engine: Engine | undefined;
  readonly #sessions = new Map<number, HostSession>();
  #lastSession = 0;

  async plan(request: LoadRequest, call: Call<never>): Promise<Plan> {
    const { engine, manifest, artifact } = await prepare(request, call);
    artifact.close();
    return engine.plan(manifest, engineOptions(request));
  }

  async load(request: LoadRequest, call: Call<LoadEvent>): Promise<Loaded> {
    const { engine, manifest, artifact } = await prepare(request, call);
    try {
      const tokenizer = await artifact.verify(tokenizerOf(manifest), call.signal);
      const info = await engine.load(manifest, artifact, tokenizer);
      this.#engine = engine;
      const { version, target, profile } = engine;
      return { info, version, target, profile };
    } finally {
      artifact.close();
    }
  }

  async session(): Promise<number> {
    const session = new HostSession(this.#loaded, await this.#loaded.session());
    this.#sessions.set(++this.#lastSession, session);
    return this.#lastSession;
  }

  async generate(request: GenerateRequest, call: Call<Piece>): Promise<Generation> {
    return this.#at(request.session).generate(request, call);
  }

  async reset({ session }: { session: number }): Promise<void> {
    this.#at(session).reset();
  }

  async ids({ session }: { session: number }): Promise<number[]> {
    return this.#at(session).low.ids();
  }

  async times({ session }: { session: number }): Promise<KernelTime[]> {
    return this.#at(session).low.times();
  }

  async close({ session }: { session: number }): Promise<void> {
    this.#at(session).close();
    this.#sessions.delete(session);
  }

  async encode({ prompt }: { prompt: Exclude<Prompt, Uint32Array> }): Promise<number[]> {
    return typeof prompt === 'string'
      ? this.#loaded.encode(prompt)
      : this.#loaded.encodeChat([...prompt]);
  }

  async census(): Promise<Census> {
    return this.#loaded.census();
  }

  async dispose(): Promise<void> {
    for (const session of this.#sessions.values()) session.end();
    this.#sessions.clear();
    await this.#engine?.unload();
    this.#engine = undefined;
  }

  get #loaded(): Engine {
    if (!this.#engine) throw new TandemError('invalid_argument', 'the model was disposed of');
    return this.#engine;
  }

  #at(id: number): HostSession {
    void this.#loaded;
    const session = this.#sessions.get(id);
    if (!session) throw new TandemError('invalid_argument', 'the session was closed');
    return session;
  }
}

class HostSession {
  readonly #engine: Engine;
  // Ends the generation that runs, if one does.
  #abort: (() => void) | undefined;
  #last: Promise<unknown> = Promise.resolve();

  constructor(
    engine: Engine,
    readonly low: Session,
  ) {
    this.#engine = engine;
  }

  async generate(request: GenerateRequest, call: Call<Piece>): Promise<Generation> {
    if (this.#abort) {
      throw new TandemError(
        'invalid_argument',
        'the session is generating: end that first, or take another session',
      );
    }
    const run = this.#run(request, call, this.#last);
    this.#last = run.catch(() => {});
    return run;
  }

  // `before`: a step of an aborted generation may still be awaited.
  async #run(
    { prompt, options }: GenerateRequest,
    { emit, signal }: Call<Piece>,
    before: Promise<unknown>,
  ): Promise<Generation> {
    const { low } = this;
    let started = false;
    let ended: Generation | undefined;
    const abort = () => {
      this.#release(abort);
      if (!started) return;
      const text = low.abort();
      ended = low.generation();
      emit({ text, stats: ended.stats });
    };
    if (!signal.aborted) this.#abort = abort;
    signal.addEventListener('abort', abort);
    try {
      await before;
      low.start(this.#ids(prompt), toLowLevel(options));
      started = true;
      if (signal.aborted) abort();
      while (!ended && low.running) {
        const text = await low.step();
        if (!ended) emit({ text, stats: low.stats() });
      }
      return ended ?? low.generation();
    } finally {
      signal.removeEventListener('abort', abort);
      this.#release(abort);
    }
  }

  #release(abort: () => void): void {
    if (this.#abort === abort) this.#abort = undefined;
  }

  reset(): void {
    this.end();
    this.low.reset();
  }

  close(): void {
    this.end();
    this.low.close();
  }

  end(): void {
    this.#abort?.();
  }

  #ids(prompt: Prompt): ArrayLike<number> {
    if (typeof prompt === 'string') return this.#engine.encode(prompt);
    return prompt instanceof Uint32Array ? prompt : this.low.nextPrompt([...prompt]);
  }
}

/** The low-level form of a generation's options. */
function toLowLevel({ stop, mtp, ...options }: GenerateRequest['options']) {
  const { maxTokens, ignoreEos, biases, ...sampling } = options;
  return defined({
    maxTokens,
    ignoreEos,
    biases,
    sampling: defined(sampling),
    stopStrings: typeof stop === 'string' ? [stop] : stop,
    mtp: mtp === 'auto' ? ('automatic' as const) : mtp,
  });
}

type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

function defined<T extends object>(options: T): Defined<T> {
  return Object.fromEntries(
    Object.entries(options).filter(([, value]) => value !== undefined),
  ) as Defined<T>;
}

async function prepare(request: LoadRequest, call: Call<LoadEvent>) {
  const warn = (warning: string) => call.emit({ warning });
  const cache = request.cache === 'opfs' ? await cacheOrNone(warn) : undefined;
  const artifact = new Artifact(openSource(request.location), { cache, warn });
  const manifest = await artifact.manifest(call.signal);
  const engine = await createEngine(
    {
      target: chooseTarget(manifest, request.mtp ?? 'auto'),
      profile: request.profile ?? false,
      folder: request.engine,
      release: request.release
        ? await fetchRelease(String(request.release), call.signal)
        : undefined,
    },
    {
      ...engineOptions(request),
      signal: call.signal,
      onProgress: progress => call.emit({ progress }),
    },
  );
  return { engine, manifest, artifact };
}

async function cacheOrNone(warn: (message: string) => void): Promise<Cache | undefined> {
  try {
    return await openCache();
  } catch (error) {
    warn(`The weights are not kept for the next time: ${(error as Error).message}`);
    return undefined;
  }
}

function engineOptions(request: LoadRequest): EngineOptions {
  const { context, inputBound, kv, drafts, disabledTiers, limits, powerPreference } = request;
  const { gpu, device, adapter, mtp } = request;
  return defined({
    ...{ context, inputBound, kv, disabledTiers, limits, powerPreference, gpu, device, adapter },
    drafts: mtp === 'off' ? 0 : drafts,
  });
}

// What the loader itself must know of a manifest; the engine checks all of it.
interface ManifestHead {
  views: Record<string, unknown>;
  tokenizer: { file: string; bytes: number; sha256: string };
}

function head(manifest: Uint8Array): ManifestHead {
  let json: Partial<ManifestHead> | null;
  try {
    json = JSON.parse(new TextDecoder().decode(manifest)) as Partial<ManifestHead> | null;
  } catch (error) {
    throw new TandemError('malformed_json', `manifest.json: ${(error as Error).message}`);
  }
  const { file, bytes } = json?.tokenizer ?? {};
  if (typeof json?.views !== 'object' || typeof file !== 'string' || !Number.isSafeInteger(bytes)) {
    throw new TandemError(
      'malformed_artifact',
      'manifest.json: expected an artifact with views and a tokenizer; see docs/artifact.md',
    );
  }
  return json as ManifestHead;
}

function chooseTarget(manifest: Uint8Array, mtp: 'auto' | 'on' | 'off'): 'plain' | 'mtp' {
  const { views } = head(manifest);
  if (mtp === 'on' && !('mtp' in views)) {
    throw new TandemError(
      'invalid_argument',
      `mtp: "on" needs the view mtp, but the artifact has ${Object.keys(views).join(', ')}`,
    );
  }
  return mtp !== 'off' && 'mtp' in views ? 'mtp' : 'plain';
}

function tokenizerOf(manifest: Uint8Array): Range {
  const { file, bytes, sha256 } = head(manifest).tokenizer;
  return { file, offset: 0, bytes, sha256 };
}
