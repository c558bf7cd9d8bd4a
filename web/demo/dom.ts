// Short ways to the page's elements.

/** An element of the page, which is there. */
export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no #${id}`);
  return element as T;
}

export const input = (id: string) => byId<HTMLInputElement>(id);
export const button = (id: string) => byId<HTMLButtonElement>(id);

export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  className = '',
  text = '',
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  element.className = className;
  element.textContent = text;
  return element;
}

/** Shows the second of two buttons in the place of the first, with the keyboard's focus if that has it. */
export function swap(first: HTMLButtonElement, second: HTMLButtonElement): void {
  const focused = document.activeElement === first;
  first.hidden = true;
  second.hidden = false;
  if (focused) second.focus();
}

/** Terms and values of a <dl>; a value is wide where it is long. */
export function fillList(list: HTMLElement, entries: [term: string, value: string][]): void {
  list.replaceChildren(
    ...entries.map(([term, value]) => {
      const entry = make('div', value.length > 36 ? 'wide' : '');
      entry.append(make('dt', '', term), make('dd', '', value));
      return entry;
    }),
  );
}

/** The number in a field, or undefined where it is empty. */
export function numberIn(id: string): number | undefined {
  const { value, valueAsNumber } = input(id);
  return value === '' ? undefined : valueAsNumber;
}

/** The value of the checked one among radio buttons. */
export function chosen(name: string): string {
  const checked = document.querySelector<HTMLInputElement>(`input[name="${name}"]:checked`);
  return checked?.value ?? '';
}

export function saveFile(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: 'application/json' }));
  const link = make('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

export function bytesText(bytes: number): string {
  const units = ['B', 'KB', 'MB', 'GB'];
  let unit = 0;
  for (; bytes >= 1000 && unit < units.length - 1; unit++) bytes /= 1000;
  return `${bytes.toFixed(unit === 0 || bytes >= 100 ? 0 : 1)} ${units[unit]}`;
}

export const percent = (share: number) => `${Math.round(share * 100)} %`;
