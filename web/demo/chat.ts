// The conversation: turns as they are written, their figures, and the plot of them.
import type { Generation, GenerateOptions, GenerationResult, Model, Session } from 'tandem';
import { button, byId, chosen, fillList, make, numberIn, percent, swap } from './dom.js';
import { Meter } from './meter.js';
import { drawPlot, type Line } from './plot.js';
import { hideProblem, showProblem } from './problem.js';
import { unload } from './model_panel.js';

let session: Session | undefined;
let answer: Generation | undefined;
let lines: Line[] = [];

export function startChat(): void {
  const prompt = byId<HTMLTextAreaElement>('prompt');
  byId<HTMLFormElement>('ask').addEventListener('submit', (event) => {
    event.preventDefault();
    void send();
  });
  prompt.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      void send();
    }
  });
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') answer?.abort();
  });
  button('stop').onclick = () => answer?.abort();
  button('new-chat').onclick = () => void newChat();
}

export function setChatModel(model: Model | undefined): void {
  session = model?.session();
  for (const id of ['send', 'new-chat']) button(id).disabled = !model;
  const drafts = model ? model.info.drafts > 0 : true;
  for (const choice of document.querySelectorAll<HTMLInputElement>('input[name="mtp"]')) {
    choice.disabled = !drafts && choice.value !== 'off';
    choice.checked = choice.value === (drafts ? 'auto' : 'off');
  }
  clear();
  if (model) byId('prompt').focus();
}

async function send(): Promise<void> {
  const prompt = byId<HTMLTextAreaElement>('prompt');
  const content = prompt.value.trim();
  if (!session || answer || !content) return;
  hideProblem();
  prompt.value = '';
  addTurn('user', content);
  const turn = addTurn('model', '');
  turn.classList.add('writing');
  const options = generateOptions();
  answer = session.generate([{ role: 'user', content }], options);
  showBusy(true);
  try {
    await write(answer, turn, options.mtp === 'off' ? 'plain' : 'mtp');
    const result = await answer.result;
    addTo(turn, make('small', '', ending(result, options)));
    showFigures(result.stats);
  } catch (error) {
    showProblem(error);
    addTo(turn, make('small', 'bad', 'This answer could not be finished.'));
    if ((error as { code?: string }).code === 'device_lost') await unload();
  } finally {
    turn.classList.remove('writing');
    answer = undefined;
    showBusy(false);
  }
}

// Shows what has come once a frame, however fast the rounds are.
async function write(answer: Generation, turn: HTMLElement, mode: Line['mode']): Promise<void> {
  const chart = startLine(mode);
  let text = '';
  let frame = 0;
  const show = () => {
    frame = 0;
    addTo(turn, text);
    text = '';
    if (answer.stats) chart(answer.stats);
  };
  try {
    for await (const piece of answer) {
      text += piece;
      frame ||= requestAnimationFrame(show);
    }
  } finally {
    cancelAnimationFrame(frame);
    show();
  }
}

/** Begins an answer's line in the plot; gives what adds to it. A long line gets a point each 100 ms. */
function startLine(mode: Line['mode']): (stats: NonNullable<Generation['stats']>) => void {
  const meter = new Meter();
  const line: Line = { mode, samples: [] };
  lines.push(line);
  let last = 0;
  return (stats) => {
    const now = performance.now();
    if (line.samples.length > 20 && now - last < 100) return;
    last = now;
    const sample = meter.add(now, stats);
    if (!sample) return;
    line.samples.push(sample);
    showFigures(stats, sample.tokensPerSecond);
    drawPlot(byId('plot'), lines);
  };
}

function generateOptions(): GenerateOptions {
  const entries = {
    temperature: numberIn('temperature'),
    topK: numberIn('top-k'),
    topP: numberIn('top-p'),
    minP: numberIn('min-p'),
    maxTokens: numberIn('max-tokens'),
  };
  return {
    ...(Object.fromEntries(Object.entries(entries).filter(([, value]) => value !== undefined)) as GenerateOptions),
    seed: numberIn('seed') ?? Math.floor(Math.random() * 2 ** 32),
    mtp: chosen('mtp') as 'auto' | 'on' | 'off',
  };
}

function ending({ stop, stats }: GenerationResult, { seed }: GenerateOptions): string {
  const reasons: Record<GenerationResult['stop'], string> = {
    stop_id: '',
    stop_string: '',
    length: 'cut at the number of tokens; ',
    context: 'cut where the context ends; ',
    aborted: 'stopped; ',
  };
  return `${reasons[stop]}${stats.generatedTokens} tokens, seed ${seed}`;
}

function showFigures(stats: NonNullable<Generation['stats']>, lately?: number): void {
  const drafted = stats.drafted[0] + stats.drafted[1];
  fillList(byId('figures'), [
    ['Tokens per second', (lately ?? stats.decodeTokensPerSecond).toFixed(1)],
    ['First token', `${Math.round(stats.firstTokenMs)} ms`],
    ['Tokens per round', stats.tokensPerRound.toFixed(2)],
    ['Drafts accepted', drafted ? percent(stats.acceptance) : 'none drafted'],
    ['Prompt', `${stats.promptTokens} tokens, ${stats.reusedTokens} reused`],
  ]);
}

function addTurn(who: 'user' | 'model', text: string): HTMLElement {
  const log = byId('log');
  log.querySelector('.hint')?.remove();
  const turn = make('p', `turn ${who}`, text);
  log.append(turn);
  log.scrollTop = log.scrollHeight;
  return turn;
}

// Keeps the end in sight where it was.
function addTo(turn: HTMLElement, more: string | HTMLElement): void {
  const log = byId('log');
  const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
  turn.append(more);
  if (atEnd) log.scrollTop = log.scrollHeight;
}

async function newChat(): Promise<void> {
  answer?.abort();
  clear();
  await session?.reset();
  byId('prompt').focus();
}

function clear(): void {
  lines = [];
  fillList(byId('figures'), []);
  drawPlot(byId('plot'), lines);
  for (const turn of document.querySelectorAll('.turn')) turn.remove();
}

function showBusy(busy: boolean): void {
  if (busy) swap(button('send'), button('stop'));
  else swap(button('stop'), button('send'));
}
