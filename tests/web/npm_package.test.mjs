// The npm package as a program gets it: packed, installed in an empty folder without network, imported by its name.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { dist } from './support/package.mjs';

const built = fileURLToPath(new URL('../', dist));
const tsc = fileURLToPath(new URL('../../web/node_modules/typescript/bin/tsc', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'tandem-npm-'));
after(() => rmSync(folder, { recursive: true }));

const run = (program, ...args) => execFileSync(program, args, { cwd: folder, encoding: 'utf8' });
const compile = (file, text) => {
  writeFileSync(join(folder, file), text);
  const options = ['--strict', '--noEmit', '--target', 'es2022', '--lib', 'es2023,dom,dom.asynciterable'];
  return run(process.execPath, tsc, '--module', 'nodenext', '--ignoreConfig', '--types', '', ...options, file);
};

test('it packs all that was built, with readme and license', () => {
  writeFileSync(join(folder, 'package.json'), '{ "name": "user", "type": "module" }');
  const [packed] = JSON.parse(run('npm', 'pack', '--json', built));
  const files = readdirSync(built, { recursive: true }).filter((file) => statSync(join(built, file)).isFile());
  assert.deepEqual(packed.files.map(({ path }) => path).sort(), files.sort());
  for (const file of ['LICENSE', 'README.md', 'dist/index.d.ts', 'low_level.d.ts'])
    assert.ok(files.includes(file), file);
  run('npm', 'install', '--offline', '--no-audit', '--no-fund', packed.filename);
});

test('a program imports it by its name', () => {
  const program = `import { Tandem, clearCache } from 'tandem';
    console.log(typeof Tandem.load, typeof Tandem.plan, typeof clearCache);`;
  writeFileSync(join(folder, 'program.mjs'), program);
  assert.equal(run(process.execPath, 'program.mjs').trim(), 'function function function');
});

test('what the package does not export is refused', () => {
  writeFileSync(join(folder, 'inside.mjs'), `import 'tandem/dist/worker.js';`);
  assert.throws(() => run(process.execPath, 'inside.mjs'), /ERR_PACKAGE_PATH_NOT_EXPORTED/);
});

test('its types describe it', () => {
  compile(
    'right.ts',
    `import { Tandem, type Model } from 'tandem';
    const model: Model = await Tandem.load('./atlas/', { context: 512 });
    for await (const piece of model.session().generate('Hello')) piece.toUpperCase();`,
  );
  const wrong = `import { Tandem } from 'tandem'; await Tandem.load('./atlas/', { context: 'long' });`;
  assert.throws(
    () => compile('wrong.ts', wrong),
    ({ stdout }) => /wrong\.ts.*Type 'string' is not assignable to type 'number/.test(stdout),
  );
});
