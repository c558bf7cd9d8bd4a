// A small plot of a conversation: tokens per second of each answer, and the acceptance of its drafts.
import { make } from './dom.js';
import type { Sample } from './meter.js';

export interface Line {
  mode: 'plain' | 'mtp';
  samples: Sample[];
}

const width = 480;
const height = 120;
const left = 34;
const bottom = 12;
const keys: [className: string, text: string][] = [
  ['rate plain', 'plain, tokens/s'],
  ['rate mtp', 'MTP, tokens/s'],
  ['acceptance', 'drafts accepted, 0 to 100 %'],
];
const namespace = 'http://www.w3.org/2000/svg';

/** Draws lines one after the other. Says the same in words for those who cannot see it. */
export function drawPlot(figure: HTMLElement, lines: Line[]): void {
  const total = lines.reduce((count, line) => count + line.samples.length, 0);
  if (total < 2) return figure.replaceChildren();

  const top = niceCeiling(Math.max(...lines.flatMap((line) => line.samples.map((sample) => sample.tokensPerSecond))));
  const y = (share: number) => (height - bottom) * (1 - share) + 6;
  const svg = node('svg', {
    viewBox: `0 0 ${width} ${height}`,
    role: 'img',
    'aria-label': inWords(lines),
  });
  for (const share of [0, 0.5, 1]) {
    svg.append(
      node('line', { class: 'axis', x1: left, x2: width, y1: y(share), y2: y(share) }),
      label(left - 4, y(share) + 4, 'end', String(top * share)),
    );
  }

  let begin = 0;
  for (const { mode, samples } of lines) {
    const x = (i: number) => left + ((begin + i) / Math.max(1, total - 1)) * (width - left - 2);
    const path = (values: (number | null)[]) =>
      values.map((value, i) => (value === null ? '' : `${x(i)},${y(value)}`)).join(' ');
    svg.append(
      node('polyline', {
        class: `rate ${mode}`,
        points: path(samples.map((sample) => sample.tokensPerSecond / top)),
      }),
      node('polyline', {
        class: 'acceptance',
        points: path(samples.map((sample) => sample.acceptance)),
      }),
    );
    begin += samples.length;
  }

  figure.replaceChildren(svg, ...keys.map(key));
}

function inWords(lines: Line[]): string {
  const last = lines.at(-1)?.samples.at(-1);
  if (!last) return 'No figures yet';
  const rate = `${last.tokensPerSecond.toFixed(1)} tokens per second`;
  return last.acceptance === null
    ? `Last: ${rate}`
    : `Last: ${rate}, ${Math.round(last.acceptance * 100)} % of drafts accepted`;
}

/** The next of 1, 2, 5, 10, 20, ... */
export function niceCeiling(value: number): number {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return power * [1, 2, 5, 10].find((step) => step * power >= value)!;
}

function key([className, text]: [string, string]): HTMLElement {
  const sample = node('svg', { viewBox: '0 0 18 8', 'aria-hidden': 'true' });
  sample.append(node('line', { class: className, x1: 0, x2: 18, y1: 4, y2: 4 }));
  const entry = make('span', 'key', text);
  entry.prepend(sample);
  return entry;
}

function label(x: number, y: number, anchor: string, text: string): SVGElement {
  const element = node('text', { x, y, 'text-anchor': anchor });
  element.textContent = text;
  return element;
}

function node(tag: string, attributes: Record<string, string | number>): SVGElement {
  const element = document.createElementNS(namespace, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  return element;
}
