// From a location to an engine that can plan or load: the artifact's manifest, and the module that fits it.
import { Artifact } from './artifact.js';
import { openCache, type Cache } from './cache.js';
import { defined } from './defined.js';
import { createEngine, fetchRelease } from './engine_module.js';
import { TandemError } from './errors.js';
import { openSource } from './source.js';
import type { Call, LoadEvent, LoadRequest } from './host.js';
import type { EngineOptions, Range } from '../low_level.js';

export async function prepare(request: LoadRequest, call: Call<LoadEvent>) {
  const warn = (warning: string) => call.emit({ warning });
  const cache = request.cache === 'opfs' ? await cacheOrNone(warn) : undefined;
  const artifact = new Artifact(openSource(request.location), { cache, warn });
  const manifest = await artifact.manifest(call.signal);
  const engine = await createEngine(
    {
      target: chooseTarget(manifest, request.mtp ?? 'auto'),
      profile: request.profile ?? false,
      folder: request.engine,
      release: request.release ? await fetchRelease(String(request.release), call.signal) : undefined,
    },
    {
      ...engineOptions(request),
      signal: call.signal,
      onProgress: (progress) => call.emit({ progress }),
    },
  );
  return { engine, manifest, artifact };
}

async function cacheOrNone(warn: (message: string) => void): Promise<Cache | undefined> {
  try {
    return await openCache();
  } catch (error) {
    warn(`The weights are not kept for the next time: ${(error as Error).message}`);
    return undefined;
  }
}

export function engineOptions(request: LoadRequest): EngineOptions {
  const { context, inputBound, kv, activations, drafts, disabledTiers, limits, powerPreference } = request;
  const { gpu, device, adapter, mtp } = request;
  return defined({
    ...{ context, inputBound, kv, activations, disabledTiers, limits, powerPreference, gpu, device, adapter },
    drafts: mtp === 'off' ? 0 : drafts,
  });
}

// What the loader itself must know of a manifest; the engine checks all of it.
interface ManifestHead {
  views: Record<string, unknown>;
  tokenizer: { file: string; bytes: number; sha256: string };
}

const tokenizerLimit = 256 << 20;

function head(manifest: Uint8Array): ManifestHead {
  let json: Partial<ManifestHead> | null;
  try {
    json = JSON.parse(new TextDecoder().decode(manifest)) as Partial<ManifestHead> | null;
  } catch (error) {
    throw new TandemError('malformed_json', `manifest.json: ${(error as Error).message}`);
  }
  const { file, bytes } = json?.tokenizer ?? {};
  if (typeof json?.views !== 'object' || typeof file !== 'string' || !(bytes! <= tokenizerLimit)) {
    throw new TandemError(
      'malformed_artifact',
      'manifest.json: expected an artifact with views and a tokenizer; see docs/artifact.md',
    );
  }
  return json as ManifestHead;
}

function chooseTarget(manifest: Uint8Array, mtp: 'auto' | 'on' | 'off'): 'plain' | 'mtp' {
  const { views } = head(manifest);
  if (mtp === 'on' && !('mtp' in views)) {
    throw new TandemError(
      'invalid_argument',
      `mtp: "on" needs the view mtp, but the artifact has ${Object.keys(views).join(', ')}`,
    );
  }
  return mtp !== 'off' && 'mtp' in views ? 'mtp' : 'plain';
}

export function tokenizerOf(manifest: Uint8Array): Range {
  const { file, bytes, sha256 } = head(manifest).tokenizer;
  return { file, offset: 0, bytes, sha256 };
}
