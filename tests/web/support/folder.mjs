// A folder of the browser's private file system, in memory, that can be damaged and filled up.
export class FakeFolder {
  entries = new Map();
  quota = Infinity;

  async *keys() {
    yield* this.entries.keys();
  }

  async getDirectoryHandle(name, { create } = {}) {
    if (!this.entries.has(name)) {
      if (!create) throw new DOMException(name, 'NotFoundError');
      const folder = new FakeFolder();
      folder.quota = this.quota;
      this.entries.set(name, folder);
    }
    return this.entries.get(name);
  }

  async getFileHandle(name, { create } = {}) {
    if (!this.entries.has(name)) {
      if (!create) throw new DOMException(name, 'NotFoundError');
      this.entries.set(name, new Uint8Array(0));
    }
    return {
      getFile: async () => new File([this.entries.get(name)], name),
      createWritable: async () => this.#writable(name),
    };
  }

  async removeEntry(name) {
    if (!this.entries.delete(name)) throw new DOMException(name, 'NotFoundError');
  }

  #writable(name) {
    let written = new Uint8Array(0);
    return {
      write: async (bytes) => {
        const used = [...this.entries.values()].reduce((sum, entry) => sum + entry.length, 0);
        if (used + bytes.length > this.quota) throw new DOMException('full', 'QuotaExceededError');
        written = bytes.slice();
      },
      close: async () => void this.entries.set(name, written),
    };
  }
}

/** Gives this process an origin's private file system; returns its root. */
export function installStorage(root = new FakeFolder()) {
  Object.defineProperty(globalThis, 'navigator', {
    value: { storage: { getDirectory: async () => root } },
    configurable: true,
  });
  return root;
}
