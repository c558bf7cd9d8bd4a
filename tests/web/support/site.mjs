// The built page and package on a server, with the built engine, or with one that needs no GPU.
import { readFile } from 'node:fs/promises';
import { sha256 } from './bytes.mjs';
import { readmeExample } from './example.mjs';
import { canonical, fakeEngineFiles, fakeRelease } from './fake_release.mjs';
import { serve } from './server.mjs';

export const site = new URL('../../../build/web-site/', import.meta.url);

/** Of the site, whose engine files and release.json are among `files`, where a test can change them. */
async function serveSite(engine, release) {
  const files = new Map([
    ['/release.json', release],
    ['/example.html', Buffer.from(await readmeExample())],
    ['/blank.html', Buffer.from('<!doctype html><link rel="icon" href="icon.svg">')],
    ['/favicon.ico', Buffer.alloc(0)], // which browsers ask for unasked
  ]);
  for (const [name, bytes] of engine) files.set(`/tandem/engine/${name}`, bytes);
  return serve({ '/': site }, files);
}

export async function serveFakeSite() {
  const engine = fakeEngineFiles();
  const manifest = await readFile(new URL('atlas/manifest.json', site));
  return serveSite(engine, Buffer.from(canonical(fakeRelease(engine, sha256(manifest)))));
}

export async function serveBuiltSite() {
  const names = [...fakeEngineFiles().keys()];
  const files = await Promise.all(names.map((name) => readFile(new URL(`tandem/engine/${name}`, site))));
  return serveSite(
    names.map((name, i) => [name, files[i]]),
    await readFile(new URL('release.json', site)),
  );
}
