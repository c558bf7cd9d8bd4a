// The engine's side of the API: one loaded model and its sessions, in the thread where it runs. Every
// method takes and gives plain data, so that a worker can be in between (channel.ts).
import { TandemError } from './errors.js';
import { HostSession, type GenerateRequest, type Piece } from './host_session.js';
import { engineOptions, prepare, tokenizerOf } from './opening.js';
import type { Engine, EngineInfo, Plan } from '../low_level.js';
import type { Census, Generation, KernelTime, LoadOptions, Location, Progress, Prompt } from './types.js';

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
    return typeof prompt === 'string' ? this.#loaded.encode(prompt) : this.#loaded.encodeChat([...prompt]);
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
