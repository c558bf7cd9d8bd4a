// The benchmark: plain and MTP in turns on one prompt, and everything about it as JSON.
import type { GenerationResult, Model } from 'tandem';
import { button, byId, input, make, percent, saveFile, swap } from './dom.js';
import { compare, median, sha256Text, type Run } from './bench_figures.js';
import { hideProblem, showProblem } from './problem.js';

let model: Model | undefined;
let stopping = false;
let report: object | undefined;

export function startBench(): void {
  byId<HTMLFormElement>('bench-form').addEventListener('submit', (event) => {
    event.preventDefault();
    void run();
  });
  button('bench-stop').onclick = () => (stopping = true);
  button('bench-save').onclick = () => saveFile('tandem-bench.json', `${JSON.stringify(report, null, 2)}\n`);
}

export function setBenchModel(next: Model | undefined): void {
  model = next;
  button('bench-run').disabled = !next;
}

async function run(): Promise<void> {
  if (!model) return;
  hideProblem();
  stopping = false;
  showBusy(true);
  const prompt = byId<HTMLTextAreaElement>('bench-prompt').value;
  const pairs = input('pairs').valueAsNumber;
  const maxTokens = input('bench-tokens').valueAsNumber;
  const runs: Run[] = [];
  try {
    await once(model, 'plain', prompt, Math.min(8, maxTokens)); // warm-up
    for (let pair = 0; pair < pairs; pair++) {
      for (const mode of order(model, pair)) {
        if (stopping) break;
        showProgress(`Pair ${pair + 1} of ${pairs}, ${mode} ...`);
        runs.push({ mode, pair, ...(await once(model, mode, prompt, maxTokens)) });
      }
    }
    report = await makeReport(model, prompt, maxTokens, runs);
    showResult(runs);
    button('bench-save').disabled = false;
  } catch (error) {
    showProblem(error);
  } finally {
    showBusy(false);
  }
}

// Each comes first as often as the other.
function order(model: Model, pair: number): Run['mode'][] {
  if (model.info.drafts === 0) return ['plain'];
  return pair % 2 ? ['mtp', 'plain'] : ['plain', 'mtp'];
}

async function once(model: Model, mode: Run['mode'], content: string, maxTokens: number): Promise<GenerationResult> {
  const session = model.session();
  const mtp = mode === 'mtp' ? 'on' : 'off';
  const options = { maxTokens, temperature: 0, ignoreEos: true, mtp } as const;
  try {
    return await session.generate([{ role: 'user', content }], options).result;
  } finally {
    await session.close();
  }
}

async function makeReport(model: Model, prompt: string, maxTokens: number, runs: Run[]) {
  return {
    schema: 'tandem.web_bench',
    schema_version: 1,
    date: new Date().toISOString(),
    browser: navigator.userAgent,
    engine: model.engine,
    info: model.info,
    prompt_sha256: await sha256Text(prompt),
    max_tokens: maxTokens,
    comparison: compare(runs),
    runs: await Promise.all(
      runs.map(async ({ mode, pair, ids, stop, stats }) => ({
        ...{ mode, pair, stop, stats },
        ids_sha256: await sha256Text(ids.join(',')),
      })),
    ),
  };
}

function showResult(runs: Run[]): void {
  const table = make('table');
  const heads = ['', 'Tokens/s', 'First token', 'Tokens per round', 'Accepted'];
  table
    .createTHead()
    .insertRow()
    .append(...heads.map((text) => make('th', '', text)));
  const body = table.createTBody();
  for (const mode of ['plain', 'mtp'] as const) {
    const stats = runs.filter((run) => run.mode === mode).map((run) => run.stats);
    if (stats.length === 0) continue;
    const of = (value: (one: Run['stats']) => number) => median(stats.map(value));
    const cells = [
      mode === 'mtp' ? 'MTP' : 'Plain',
      of((one) => one.decodeTokensPerSecond).toFixed(1),
      `${Math.round(of((one) => one.firstTokenMs))} ms`,
      of((one) => one.tokensPerRound).toFixed(2),
      mode === 'mtp' ? percent(of((one) => one.acceptance)) : '',
    ];
    body.insertRow().append(...cells.map((text) => make('td', '', text)));
  }
  const { equal, speedup } = compare(runs);
  const words =
    speedup === null
      ? 'Medians.'
      : `Medians. MTP is ${speedup.toFixed(2)} times as fast; the tokens are ${equal ? 'the same' : 'NOT the same'}.`;
  byId('bench-result').replaceChildren(table, make('p', equal ? 'note' : 'bad', words));
}

function showProgress(text: string): void {
  byId('bench-result').replaceChildren(make('p', 'note', text));
}

function showBusy(busy: boolean): void {
  if (busy) swap(button('bench-run'), button('bench-stop'));
  else swap(button('bench-stop'), button('bench-run'));
}
