// release.json: which artifact and which eight engine files belong together. Everything but exactly
// what it says is refused.
import { TandemError } from './errors.js';
import { isSha256, sha256 } from './sha256.js';

export type Target = 'plain' | 'mtp';
export type Build = 'wall' | 'profile';

export interface Release {
  engine: string;
  /** The sha256 of the artifact's manifest. */
  artifact: string;
  targets: Record<Target, { kernel_closure: string } & Record<Build, Module>>;
}

export interface Module {
  js: BoundFile;
  wasm: BoundFile;
}

export interface BoundFile {
  file: string;
  bytes: number;
  sha256: string;
}

const stems: Record<Target, string> = { plain: 'webgpu_llama', mtp: 'gemma4_mtp' };

/** The name of one of the eight files. */
export function moduleFile(target: Target, build: Build, kind: 'js' | 'wasm'): string {
  return `${stems[target]}${build === 'profile' ? '.profile' : ''}.${kind}`;
}

/** Errors: malformed_json, unknown_key, missing_key, wrong_type, bad_value; each names the key. */
export function parseRelease(text: string): Release {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw new TandemError('malformed_json', `release.json: ${(error as Error).message}`);
  }
  const release = object(json, '', ['artifact', 'engine', 'schema', 'schema_version', 'targets']);
  expect(release.schema, 'tandem.release', 'schema');
  expect(release.schema_version, 1, 'schema_version');
  if (typeof release.engine !== 'string') wrong('wrong_type', 'engine', 'a string', release.engine);
  digest(release.artifact, 'artifact');
  const targets = object(release.targets, 'targets', ['mtp', 'plain']);
  for (const target of ['plain', 'mtp'] as const) checkTarget(targets[target], target);
  if (canonical(release) !== text) {
    throw new TandemError('bad_value', 'release.json is not the canonical text of its content');
  }
  return json as Release;
}

function checkTarget(json: unknown, target: Target): void {
  const key = `targets.${target}`;
  const found = object(json, key, ['kernel_closure', 'profile', 'wall']);
  digest(found.kernel_closure, `${key}.kernel_closure`);
  for (const build of ['wall', 'profile'] as const) {
    const module = object(found[build], `${key}.${build}`, ['js', 'wasm']);
    for (const kind of ['js', 'wasm'] as const) {
      const name = `${key}.${build}.${kind}`;
      const bound = object(module[kind], name, ['bytes', 'file', 'sha256']);
      expect(bound.file, moduleFile(target, build, kind), `${name}.file`);
      if (!Number.isSafeInteger(bound.bytes) || (bound.bytes as number) < 1) {
        wrong('bad_value', `${name}.bytes`, 'a count of at least 1', bound.bytes);
      }
      digest(bound.sha256, `${name}.sha256`);
    }
  }
}

/** The bytes of one of its files, which are refused where they are not those that it binds. */
export async function checkFile(bytes: Uint8Array<ArrayBuffer>, bound: BoundFile): Promise<void> {
  if (bytes.length !== bound.bytes) {
    throw new TandemError(
      'hash_mismatch',
      `${bound.file}: release.json has ${bound.bytes} bytes, found ${bytes.length}`,
    );
  }
  const found = await sha256(bytes);
  if (found !== bound.sha256) {
    throw new TandemError('hash_mismatch', `${bound.file}: release.json has sha256 ${bound.sha256}, found ${found}`);
  }
}

type Json = Record<string, unknown>;

function object(json: unknown, at: string, keys: string[]): Json {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) {
    wrong('wrong_type', at, 'an object', json);
  }
  const where = at && `${at}.`;
  for (const key of Object.keys(json as Json)) {
    if (!keys.includes(key)) {
      throw new TandemError('unknown_key', `release.json: ${where}${key} is not part of the schema`);
    }
  }
  for (const key of keys) {
    if (!(key in (json as Json))) {
      throw new TandemError('missing_key', `release.json: ${where}${key} is missing`);
    }
  }
  return json as Json;
}

function expect(found: unknown, expected: unknown, at: string): void {
  if (found !== expected) wrong('bad_value', at, JSON.stringify(expected), found);
}

function digest(found: unknown, at: string): void {
  if (!isSha256(found)) wrong('bad_value', at, '64 lower-case hexadecimal digits', found);
}

function wrong(code: 'wrong_type' | 'bad_value', at: string, expected: string, found: unknown): never {
  throw new TandemError(
    code,
    `release.json: ${at || 'the file'}: expected ${expected}, found ${JSON.stringify(found)}`,
  );
}

/** JSON's one byte form: sorted keys, two spaces, a newline at the end. */
function canonical(json: unknown): string {
  const sorted = (value: unknown): unknown =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(
          Object.keys(value)
            .sort()
            .map((key) => [key, sorted((value as Json)[key])]),
        )
      : value;
  return `${JSON.stringify(sorted(json), null, 2)}\n`;
}
