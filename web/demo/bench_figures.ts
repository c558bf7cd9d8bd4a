// The sums of the benchmark.
import type { GenerationResult } from 'tandem';

export interface Run extends GenerationResult {
  mode: 'plain' | 'mtp';
  pair: number;
}

export function median(values: number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/**
 * Whether all runs gave the same ids, and the median of each pair's speed-up; null without a whole pair, or where no
 * draft was accepted: it would say nothing of MTP.
 */
export function compare(runs: Run[]): { equal: boolean; speedup: number | null } {
  const ids = runs.map((run) => run.ids.join());
  const speedups = runs
    .filter((run) => run.mode === 'mtp' && run.stats.acceptance > 0)
    .flatMap((mtp) => {
      const plain = runs.find((run) => run.mode === 'plain' && run.pair === mtp.pair);
      return plain ? [mtp.stats.decodeTokensPerSecond / plain.stats.decodeTokensPerSecond] : [];
    });
  return {
    equal: ids.every((text) => text === ids[0]),
    speedup: speedups.length ? median(speedups) : null,
  };
}

export async function sha256Text(text: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
