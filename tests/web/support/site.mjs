// The built page and package on a server, with an engine that needs no GPU.
import { readFile } from 'node:fs/promises';
import { sha256 } from './bytes.mjs';
import { readmeExample } from './example.mjs';
import { canonical, fakeEngineFiles, fakeRelease } from './fake_release.mjs';
import { serve } from './server.mjs';

export const site = new URL('../../../build/web-site/', import.meta.url);

export async function serveFakeSite() {
  const engine = fakeEngineFiles();
  const manifest = await readFile(new URL('atlas/manifest.json', site));
  const release = canonical(fakeRelease(engine, sha256(manifest)));
  const files = new Map([
    ['/release.json', Buffer.from(release)],
    ['/example.html', Buffer.from(await readmeExample())],
    ['/blank.html', Buffer.from('<!doctype html><link rel="icon" href="icon.svg">')],
  ]);
  for (const [name, bytes] of engine) files.set(`/tandem/engine/${name}`, bytes);
  return serve({ '/': site }, files);
}
