// The running figures of an answer: how fast it has been written lately, and how many of the drafts
// were accepted.
import type { GenerateStats } from 'tandem';

export interface Sample {
  tokensPerSecond: number;
  /** Accepted part of the drafts; null where none was verified. */
  acceptance: number | null;
}

interface Count {
  ms: number;
  tokens: number;
  drafted: number;
  accepted: number;
}

const sum = ([first, second]: [number, number]) => first + second;

export class Meter {
  readonly #counts: Count[] = [];

  /** The figures of the last `windowMs`. */
  constructor(readonly windowMs = 1000) {}

  /** Takes a round's figures at a time; undefined until there is something to compare with. */
  add(ms: number, stats: GenerateStats): Sample | undefined {
    const now = {
      ms,
      tokens: stats.generatedTokens,
      drafted: sum(stats.drafted),
      accepted: sum(stats.accepted),
    };
    this.#counts.push(now);
    while (this.#counts.length > 2 && this.#counts[1]!.ms <= ms - this.windowMs) {
      this.#counts.shift();
    }
    const then = this.#counts[0]!;
    if (now.ms <= then.ms) return undefined;
    const drafted = now.drafted - then.drafted;
    return {
      tokensPerSecond: ((now.tokens - then.tokens) * 1000) / (now.ms - then.ms),
      acceptance: drafted > 0 ? (now.accepted - then.accepted) / drafted : null,
    };
  }
}
