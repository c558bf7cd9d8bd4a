// The panel that chooses, plans, loads and unloads a model.
import { clearCache, Tandem, type LoadOptions, type Location, type Model, type Plan } from 'tandem';
import { button, byId, bytesText, chosen, fillList, input, numberIn, swap } from './dom.js';
import { hideProblem, showProblem } from './problem.js';

const atlas = { location: 'atlas/', release: 'release.json' };

let model: Model | undefined;
let loading: AbortController | undefined;
let planning: AbortController | undefined;
let changed: (model: Model | undefined) => void;

/** `onChange` is told of each model that is loaded, and of none when it is gone. */
export function startModelPanel(onChange: (model: Model | undefined) => void): void {
  changed = onChange;
  const form = byId<HTMLFormElement>('source');
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    void load();
  });
  form.addEventListener('change', () => {
    showSource();
    void plan();
  });
  button('cancel').onclick = () => loading?.abort();
  button('unload').onclick = () => void unload();
  button('clear').onclick = () => void deleteKept();
  showSource();
  void plan();
}

/** Gives the model up, after its device was lost. */
export async function unload(): Promise<void> {
  const old = model;
  setModel(undefined);
  await old?.dispose();
  void plan();
}

function showSource(): void {
  input('url').hidden = chosen('from') !== 'url';
  input('folder').hidden = chosen('from') !== 'folder';
}

function location(): Location | undefined {
  switch (chosen('from')) {
    case 'url':
      return input('url').value.trim() || undefined;
    case 'folder':
      return input('folder').files?.length ? input('folder').files! : undefined;
    default:
      return atlas.location;
  }
}

function options(): LoadOptions {
  const context = numberIn('context');
  return {
    mtp: input('assistant').checked ? 'auto' : 'off',
    cache: input('keep').checked ? 'opfs' : 'none',
    profile: input('profile').checked,
    ...(context !== undefined && { context }),
    ...(chosen('from') === 'atlas' && { release: atlas.release }),
  };
}

async function plan(): Promise<void> {
  planning?.abort();
  const from = location();
  if (model || loading || !from) return;
  planning = new AbortController();
  const { signal } = planning;
  try {
    const found = await Tandem.plan(from, { ...options(), signal });
    if (signal.aborted) return;
    hideProblem();
    showPlan(found);
  } catch (error) {
    if (signal.aborted) return;
    fillList(byId('plan'), []);
    showProblem(error);
  }
}

function showPlan(plan: Plan): void {
  const { adapter, largestBuffer, limits } = plan;
  fillList(byId('plan'), [
    ['Download', bytesText(plan.downloadBytes)],
    ['Weights on the GPU', bytesText(plan.weightBytes)],
    ['Scratch', bytesText(plan.scratchBytes)],
    [`Session of ${plan.context} tokens`, bytesText(plan.sequenceBytes)],
    ['Largest buffer', `${bytesText(largestBuffer.bytes)} of ${bytesText(limits.maxBufferBytes)}`],
    ['Drafts', plan.drafts ? `${plan.drafts} a round` : 'none'],
    ['Adapter', `${adapter.name || adapter.vendor}${adapter.software ? ' (software)' : ''}`],
  ]);
  if (plan.refusal) showProblem(plan.refusal);
}

async function load(): Promise<void> {
  const from = location();
  if (!from) {
    showProblem({ message: 'Choose an artifact: its URL, or its folder.' });
    return;
  }
  planning?.abort();
  hideProblem();
  loading = new AbortController();
  showBusy(true);
  let loaded: Model | undefined;
  try {
    loaded = await Tandem.load(from, {
      ...options(),
      signal: loading.signal,
      onProgress: ({ phase, done, total }) =>
        showProgress(
          phase === 'weights' ? `Weights: ${bytesText(done)} of ${bytesText(total)}` : `Kernels: ${done} of ${total}`,
          done / total,
        ),
      onWarning: (message) => showProblem({ message }),
    });
  } catch (error) {
    if (!loading.signal.aborted) showProblem(error);
  } finally {
    loading = undefined;
    showBusy(false);
  }
  if (loaded) setModel(loaded);
}

function setModel(next: Model | undefined): void {
  model = next;
  byId<HTMLDetailsElement>('model').open = !next;
  const status = byId('status');
  if (next) {
    const { info, engine } = next;
    const build = engine.profile ? ' with kernel times' : '';
    const times = `loaded in ${seconds(info.loadMs)}, kernels compiled in ${seconds(info.compileMs)}`;
    status.textContent = `${engine.target === 'mtp' ? 'MTP' : 'Plain'} engine${build} on ${info.adapter}, ${times}`;
  } else {
    status.textContent = 'No model is loaded.';
  }
  if (next) swap(button('load'), button('unload'));
  else swap(button('unload'), button('load'));
  changed(next);
}

const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`;

function showBusy(busy: boolean): void {
  if (busy) swap(button('load'), button('cancel'));
  else swap(button('cancel'), button('load'));
  button('clear').disabled = busy;
  byId('progress').hidden = !busy;
  if (busy) showProgress('Reading the manifest', undefined);
}

function showProgress(text: string, share: number | undefined): void {
  const label = byId('progress');
  label.querySelector('span')!.textContent = text;
  const bar = label.querySelector('progress')!;
  if (share === undefined) bar.removeAttribute('value');
  else bar.value = share;
}

async function deleteKept(): Promise<void> {
  try {
    await clearCache();
    byId('status').textContent = 'The kept weights are deleted.';
  } catch (error) {
    showProblem(error);
  }
}
