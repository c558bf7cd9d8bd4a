// The fake engine as eight files that need nothing else, and the release.json that binds them.
import { readFile } from 'node:fs/promises';
import { load } from './package.mjs';
import { sha256 } from './bytes.mjs';

const { moduleFile } = await load('release.js');
const source = await readFile(new URL('fake_engine/fake.mjs', import.meta.url), 'utf8');
const builds = ['wall', 'profile'];
const targets = ['plain', 'mtp'];

/** Their names and bytes. */
export function fakeEngineFiles() {
  const files = new Map();
  for (const target of targets) {
    for (const build of builds) {
      const last = `export default factory('${target}', ${build === 'profile'});\n`;
      files.set(moduleFile(target, build, 'js'), Buffer.from(`${source}\n${last}`));
      files.set(moduleFile(target, build, 'wasm'), Buffer.from(`wasm of ${target}, ${build}`));
    }
  }
  return files;
}

/** release.json as an object with its keys in order; `canonical` makes its text. */
export function fakeRelease(files, artifact) {
  const bound = (name) => {
    const bytes = files.get(name);
    return { bytes: bytes.length, file: name, sha256: sha256(bytes) };
  };
  const module = (target, build) => ({
    js: bound(moduleFile(target, build, 'js')),
    wasm: bound(moduleFile(target, build, 'wasm')),
  });
  const entry = (target) => ({
    kernel_closure: 'a'.repeat(64),
    profile: module(target, 'profile'),
    wall: module(target, 'wall'),
  });
  return {
    artifact,
    engine: '0.1.0',
    schema: 'tandem.release',
    schema_version: 1,
    targets: { mtp: entry('mtp'), plain: entry('plain') },
  };
}

/** The byte form in which a release.json is taken. */
export const canonical = (value) => `${JSON.stringify(sorted(value), null, 2)}\n`;

function sorted(value) {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, sorted(value[key])]),
  );
}
