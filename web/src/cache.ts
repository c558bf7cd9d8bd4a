// Verified bytes in the origin's private file system, each under its sha256. So a download that was
// interrupted goes on with what is there, and artifacts share what they have in common. What is read
// back is verified again like any download.

export interface Cache {
  has(sha256: string): boolean;
  /** Undefined where the entry cannot be read. */
  read(sha256: string): Promise<Uint8Array<ArrayBuffer> | undefined>;
  /** The whole entry or none. Fails where the quota is full. */
  write(sha256: string, bytes: Uint8Array<ArrayBuffer>): Promise<void>;
  remove(sha256: string): Promise<void>;
}

const folderName = 'tandem-pieces';

/** The origin's cache. Fails where the browser has no private file system, as in some private windows. */
export async function openCache(): Promise<Cache> {
  const root = await navigator.storage.getDirectory();
  const folder = await root.getDirectoryHandle(folderName, { create: true });
  const names = new Set<string>();
  for await (const name of folder.keys()) names.add(name);
  return new FolderCache(folder, names);
}

/** Removes every artifact from the origin's cache. */
export async function clearCache(): Promise<void> {
  const root = await navigator.storage.getDirectory();
  await root.removeEntry(folderName, { recursive: true }).catch((error: Error) => {
    if (error.name !== 'NotFoundError') throw error;
  });
}

class FolderCache implements Cache {
  readonly #folder: FileSystemDirectoryHandle;
  readonly #names: Set<string>;

  constructor(folder: FileSystemDirectoryHandle, names: Set<string>) {
    this.#folder = folder;
    this.#names = names;
  }

  has(sha256: string): boolean {
    return this.#names.has(sha256);
  }

  async read(sha256: string): Promise<Uint8Array<ArrayBuffer> | undefined> {
    try {
      const file = await (await this.#folder.getFileHandle(sha256)).getFile();
      return new Uint8Array(await file.arrayBuffer());
    } catch {
      return undefined;
    }
  }

  // What was written shows only when the stream is closed.
  async write(sha256: string, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    const handle = await this.#folder.getFileHandle(sha256, { create: true });
    const stream = await handle.createWritable();
    try {
      await stream.write(bytes);
      await stream.close();
    } catch (error) {
      await this.remove(sha256);
      throw error;
    }
    this.#names.add(sha256);
  }

  async remove(sha256: string): Promise<void> {
    this.#names.delete(sha256);
    await this.#folder.removeEntry(sha256).catch(() => {});
  }
}
