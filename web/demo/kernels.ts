// The chart of the kernels' times, in the build that measures them.
import type { KernelTime, Model } from 'tandem';
import { button, byId, make, percent } from './dom.js';
import { isQuantized } from './quantized.js';
import { hideProblem, showProblem } from './problem.js';

let model: Model | undefined;

export function startKernels(): void {
  button('kernels-run').onclick = () => void measure();
}

export function setKernelsModel(next: Model | undefined): void {
  model = next;
  button('kernels-run').disabled = !next?.engine.profile;
  byId('kernels-chart').replaceChildren();
  byId('kernels-note').hidden = true;
}

async function measure(): Promise<void> {
  if (!model) return;
  hideProblem();
  button('kernels-run').disabled = true;
  const session = model.session();
  try {
    const content = 'Tell me about Kenya.';
    const options = { maxTokens: 32, ignoreEos: true, temperature: 0 };
    await session.generate([{ role: 'user', content }], options).result;
    show(await session.times());
  } catch (error) {
    showProblem(error);
  } finally {
    await session.close().catch(() => {});
    button('kernels-run').disabled = !model?.engine.profile;
  }
}

function show(times: KernelTime[]): void {
  const total = times.reduce((sum, one) => sum + one.timeNs, 0);
  const rows = [...times].sort((a, b) => b.timeNs - a.timeNs);
  const chart = make('div', 'bars');
  chart.setAttribute('role', 'list');
  for (const { kernel, calls, timeNs } of rows) {
    const share = total ? timeNs / total : 0;
    const bar = make('div', 'bar');
    bar.style.width = `${(timeNs / (rows[0]!.timeNs || 1)) * 100}%`;
    const row = make('div', 'row');
    row.setAttribute('role', 'listitem');
    row.append(
      make('span', '', kernel),
      bar,
      make('span', '', `${(timeNs / 1e6).toFixed(2)} ms, ${calls} calls, ${percent(share)}`),
    );
    chart.append(row);
  }
  byId('kernels-chart').replaceChildren(chart);
  const note = byId('kernels-note');
  note.hidden = !isQuantized(times);
  note.textContent =
    'This browser rounds GPU timestamps to 100 µs, so short kernels show as 0 or too much. In Chrome, ' +
    'chrome://flags/#enable-webgpu-developer-features gives exact ones.';
}
