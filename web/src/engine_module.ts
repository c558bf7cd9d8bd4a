// Gets one of the engine's modules: which of the four, verified by release.json where there is one.
import { TandemError } from './errors.js';
import { absolute, openUrl, readWhole } from './source.js';
import { checkFile, moduleFile, parseRelease, type Release, type Target } from './release.js';
import type { Engine, EngineOptions } from '../low_level.js';

type Factory = (options?: EngineOptions) => Promise<Engine>;

export interface ModuleChoice {
  target: Target;
  profile: boolean;
  /** The folder of the eight files. */
  folder: string;
  release: Release | undefined;
}

export async function fetchRelease(url: string, signal?: AbortSignal): Promise<Release> {
  return parseRelease(new TextDecoder().decode(await fetchFile(absolute(url), signal)));
}

/** An engine that has loaded nothing yet. */
export async function createEngine(choice: ModuleChoice, options: EngineOptions): Promise<Engine> {
  const { target, profile, folder, release } = choice;
  const build = profile ? 'profile' : 'wall';
  const url = (kind: 'js' | 'wasm') => new URL(moduleFile(target, build, kind), folder);
  if (!release) return (await importFactory(url('js').href))(options);

  const bound = release.targets[target];
  const [js, wasm] = await Promise.all(
    (['js', 'wasm'] as const).map(async (kind) => {
      const bytes = await fetchFile(url(kind), options.signal);
      await checkFile(bytes, bound[build][kind]);
      return bytes;
    }),
  );
  const blob = URL.createObjectURL(new Blob([js!], { type: 'text/javascript' }));
  try {
    const factory = await importFactory(blob);
    const engine = await factory({
      ...options,
      artifact: release.artifact,
      wasmBinary: wasm!.buffer,
      locateFile: (file) => file,
    });
    for (const [what, expected, found] of [
      ['engine', release.engine, engine.version],
      [`targets.${target}.kernel_closure`, bound.kernel_closure, engine.kernelClosure],
      ['target', target, engine.target],
      ['build', build, engine.profile ? 'profile' : 'wall'],
    ]) {
      if (expected !== found) {
        throw new TandemError('bad_value', `release.json: ${what}: the module says ${found}, expected ${expected}`);
      }
    }
    return engine;
  } finally {
    URL.revokeObjectURL(blob);
  }
}

async function importFactory(url: string): Promise<Factory> {
  try {
    return ((await import(url)) as { default: Factory }).default;
  } catch (error) {
    throw new TandemError('not_found', `the engine module ${url}: ${(error as Error).message}`);
  }
}

async function fetchFile(url: URL, signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
  const body = await openUrl(url, 0, { cache: 'no-cache', signal: signal ?? null });
  return readWhole(body, url.href);
}
