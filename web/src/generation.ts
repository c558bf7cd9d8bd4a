// One answer as it is written: its pieces to iterate over, its figures so far, and its result.
import type { Piece } from './host_session.js';
import type { GenerateStats, Generation as Result } from './types.js';

export class Generation implements AsyncIterable<string> {
  /** Everything about the answer, once it has ended. Whoever iterates gets its error there as well. */
  readonly result: Promise<Result>;
  #stats: GenerateStats | undefined;
  #text = '';
  #given = 0;
  #ended = false;
  #failure: { error: unknown } | undefined;
  #wake = () => {};
  readonly #abort: () => void;

  /** `run` starts it; pieces come by `take`, and `abort` shall end it. */
  constructor(run: (take: (piece: Piece) => void) => Promise<Result>, abort: () => void) {
    this.#abort = abort;
    this.result = run((piece) => this.#take(piece));
    this.result
      .catch((error: unknown) => (this.#failure = { error }))
      .finally(() => {
        this.#ended = true;
        this.#wake();
      });
  }

  /** The figures so far; undefined before the first round. */
  get stats(): GenerateStats | undefined {
    return this.#stats;
  }

  /** Ends the answer here; its stop reason is 'aborted', or what ended it before. */
  abort(): void {
    this.#abort();
  }

  /** Pieces of whole characters, as they come. Leaving the loop early aborts. */
  async *[Symbol.asyncIterator](): AsyncGenerator<string, void, undefined> {
    try {
      for (;;) {
        if (this.#given < this.#text.length) {
          const piece = this.#text.slice(this.#given);
          this.#given = this.#text.length;
          yield piece;
        } else if (this.#failure) {
          throw this.#failure.error;
        } else if (this.#ended) {
          return;
        } else {
          await new Promise<void>((resolve) => (this.#wake = resolve));
        }
      }
    } finally {
      if (!this.#ended) this.#abort();
    }
  }

  #take({ text, stats }: Piece): void {
    this.#text += text;
    this.#stats = stats;
    this.#wake();
  }
}
