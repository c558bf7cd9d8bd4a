// The example of web/README.md, as it stands there.
import { readFile } from 'node:fs/promises';

export async function readmeExample() {
  const text = await readFile(new URL('../../../web/README.md', import.meta.url), 'utf8');
  return /```html\n([^]*?)```/.exec(text)[1];
}
