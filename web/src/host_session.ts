// A session in the thread of its engine: one answer at a time, and how answers are ended.
import { defined } from './defined.js';
import { TandemError } from './errors.js';
import type { Call } from './host.js';
import type { Engine, Session } from '../low_level.js';
import type { GenerateOptions, GenerateStats, Generation, Prompt } from './types.js';

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

export class HostSession {
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
      throw new TandemError('invalid_argument', 'the session is generating: end that first, or take another session');
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
    let aborted = signal.aborted;
    let started = false;
    let ended: Generation | undefined;
    const abort = () => {
      this.#release(abort);
      aborted = true;
      if (!started) return;
      const text = low.abort();
      ended = low.generation();
      emit({ text, stats: ended.stats });
    };
    if (!aborted) this.#abort = abort;
    signal.addEventListener('abort', abort);
    try {
      await before;
      low.start(this.#ids(prompt), toLowLevel(options));
      started = true;
      if (aborted) abort();
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
