// Whether a browser rounds GPU timestamps: Chrome does, to 100 us, unless its developer features are on.
import type { KernelTime } from 'tandem';

const stepNs = 100_000;

/** True where every time is a multiple of 100 us, and there are enough of them for that to be no chance. */
export function isQuantized(times: Pick<KernelTime, 'timeNs'>[]): boolean {
  return times.length >= 3 && times.every(({ timeNs }) => timeNs % stepNs === 0);
}
