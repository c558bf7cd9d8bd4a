// Builds the npm package (build/web-package) and the page (build/web-site) out of what tsc and
// `make web` made. With --without-engine the eight engine files are left out: for tests that bring another.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const web = new URL('./', import.meta.url);
const build = new URL('../build/', web);
const packageFolder = new URL('web-package/', build);
const site = new URL('web-site/', build);

const copy = (from, to) => cpSync(fileURLToPath(from), fileURLToPath(to), { recursive: true });
const compile = (project) =>
  execFileSync(
    process.execPath,
    [fileURLToPath(new URL('node_modules/typescript/bin/tsc', web)), '-p', fileURLToPath(new URL(project, web))],
    { stdio: 'inherit' },
  );

for (const folder of [packageFolder, site]) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
}
for (const file of ['low_level.d.ts', 'package.json', 'README.md']) {
  copy(new URL(file, web), new URL(file, packageFolder));
}
copy(new URL('../LICENSE', web), new URL('LICENSE', packageFolder));
compile('.');
compile('demo');
for (const file of ['index.html', 'style.css', 'icon.svg', 'service_worker.js']) {
  copy(new URL(`demo/${file}`, web), new URL(file, site));
}
if (!process.argv.includes('--without-engine')) {
  for (const module of ['webgpu_llama', 'gemma4_mtp']) {
    for (const end of ['.js', '.wasm', '.profile.js', '.profile.wasm']) {
      const file = `${module}${end}`;
      copy(new URL(`web/${file}`, build), new URL(`dist/engine/${file}`, packageFolder));
    }
  }
  copy(new URL('web/release.json', build), new URL('release.json', site));
}
copy(new URL('dist/', packageFolder), new URL('tandem/', site));
copy(new URL('../models/atlas/', web), new URL('atlas/', site));
