// Where an artifact's files come from: a URL, or a folder that the user picked. Nothing here is
// trusted; whoever reads verifies.
import { TandemError, isAbort } from './errors.js';

export type Body = ReadableStream<Uint8Array<ArrayBuffer>>;

/** A folder of files. Errors: not_found, io, and the signal's own. */
export interface Source {
  /** For messages. */
  readonly name: string;
  /** The bytes of a file from `begin` on. */
  open(file: string, begin: number, signal?: AbortSignal): Promise<Body>;
}

/** What can be loaded: a folder's URL, a folder's handle, or the files of a folder. */
export type Location = string | URL | FileSystemDirectoryHandle | readonly File[] | FileList;

export function openSource(location: Location): Source {
  if (typeof location === 'string' || location instanceof URL) return new UrlSource(location);
  if ('getFileHandle' in location) return new HandleSource(location);
  return new FilesSource([...location]);
}

/** A location as a worker can be sent it: URLs made absolute, lists as arrays. */
export function portable(location: Location): Location {
  if (typeof location === 'string' || location instanceof URL) return absolute(location).href;
  return 'getFileHandle' in location ? location : [...location];
}

export function absolute(url: string | URL): URL {
  try {
    return new URL(url, globalThis.location?.href);
  } catch {
    throw new TandemError('invalid_argument', `"${url}" is not a URL`);
  }
}

class UrlSource implements Source {
  readonly name: string;

  constructor(url: string | URL) {
    const base = absolute(url);
    if (!base.pathname.endsWith('/')) base.pathname += '/';
    this.name = base.href;
  }

  // Verified pieces go to a cache of our own, so the browser need not keep a second copy of gigabytes.
  async open(file: string, begin: number, signal?: AbortSignal): Promise<Body> {
    const url = new URL(this.name);
    url.pathname += encodeURIComponent(file);
    return openUrl(url, begin, { cache: 'no-store', signal: signal ?? null });
  }
}

/** The bytes at a URL from `begin` on. Errors: not_found, io, and the signal's own. */
export async function openUrl(url: URL, begin: number, options: RequestInit): Promise<Body> {
  const headers: HeadersInit = begin > 0 ? { Range: `bytes=${begin}-` } : {};
  const response = await fetch(url, { ...options, headers }).catch((error: unknown) => {
    throw isAbort(error) ? error : new TandemError('io', `${url}: ${(error as Error).message}`);
  });
  if (!response.ok || !response.body) throw httpError(url, response.status);
  const first = response.status === 206 ? firstByte(response, begin) : 0;
  return first === begin ? response.body : response.body.pipeThrough(skip(begin - first));
}

const wholeLimit = 64 << 20;

/** All of a small file: a manifest, a module. Errors: malformed_artifact beyond 64 MiB, io, the signal's own. */
export async function readWhole(body: Body, name: string): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let bytes = 0;
  const reader = body.getReader(); // not every browser iterates over a stream
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      bytes += value.length;
      if (bytes > wholeLimit) {
        throw new TandemError('malformed_artifact', `${name}: expected at most ${wholeLimit} bytes, found more`);
      }
      chunks.push(value);
    }
  } catch (error) {
    reader.cancel().catch(() => {});
    if (error instanceof TandemError || isAbort(error)) throw error;
    throw new TandemError('io', `${name} broke off at byte ${bytes}: ${(error as Error).message}`);
  }
  return new Uint8Array(await new Blob(chunks).arrayBuffer());
}

function httpError(url: URL, status: number): TandemError {
  return status === 404 || status === 410
    ? new TandemError('not_found', `${url} does not exist (HTTP ${status})`)
    : new TandemError('io', `${url}: expected HTTP 200 or 206, found ${status}`);
}

// Where the body begins in the file. Across origins the header may be hidden; the hash tells, then.
function firstByte(response: Response, expected: number): number {
  const range = response.headers.get('Content-Range');
  const first = Number(/^bytes (\d+)-/.exec(range ?? '')?.[1] ?? expected);
  if (first <= expected) return first;
  throw new TandemError('io', `${response.url}: asked for byte ${expected}, found "${range}"`);
}

// A server that knows no ranges sends the whole file.
function skip(bytes: number) {
  return new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
    transform(chunk, controller) {
      const wanted = chunk.subarray(Math.min(bytes, chunk.length));
      bytes -= chunk.length - wanted.length;
      if (wanted.length > 0) controller.enqueue(wanted);
    },
  });
}

class HandleSource implements Source {
  readonly name: string;
  readonly #folder: FileSystemDirectoryHandle;

  constructor(folder: FileSystemDirectoryHandle) {
    this.name = folder.name;
    this.#folder = folder;
  }

  async open(file: string, begin: number): Promise<Body> {
    try {
      const handle = await this.#folder.getFileHandle(file);
      return (await handle.getFile()).slice(begin).stream();
    } catch (error) {
      const { name, message } = error as Error;
      const code = name === 'NotFoundError' ? 'not_found' : 'io';
      throw new TandemError(code, `${this.name}/${file}: ${message}`);
    }
  }
}

// The files of a folder, as <input type="file" webkitdirectory> or a drop gives them.
class FilesSource implements Source {
  readonly name: string;
  readonly #files: File[];

  constructor(files: File[]) {
    this.#files = files;
    this.name = files[0]?.webkitRelativePath?.split('/')[0] || 'the picked files';
  }

  async open(name: string, begin: number): Promise<Body> {
    const file = this.#files.find((candidate) => candidate.name === name);
    if (!file) throw new TandemError('not_found', `${name} is not in ${this.name}`);
    return file.slice(begin).stream();
  }
}
