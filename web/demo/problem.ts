// The page's one place for what went wrong.
import { byId } from './dom.js';

export function showProblem(error: unknown): void {
  const { code, message } = error as { code?: string; message?: string };
  const place = byId('problem');
  place.textContent = code ? `${message} (${code})` : (message ?? String(error));
  place.hidden = false;
}

export function hideProblem(): void {
  byId('problem').hidden = true;
}
