// An engine without a GPU, behind the low-level API: it repeats the prompt's words, two of them a round with
// drafts. For tests of what lies above the engine. A prompt's word "lose" loses the device, "huge" has no end.
const fail = (code, message) => Object.assign(new Error(message), { name: 'TandemError', code });
const turn = () => new Promise((resolve) => setTimeout(resolve, 1));
const text = (bytes) => new TextDecoder().decode(bytes);

/** What reached the engine, in order. */
export const calls = [];

async function sha256(bytes) {
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

// The pieces of the shards, as a load plan has them.
function rangesOf(manifest) {
  const { shards, piece_bytes } = JSON.parse(text(manifest));
  return shards.flatMap(({ file, bytes, pieces }) =>
    pieces.map((sha256, i) => {
      const offset = i * piece_bytes;
      return { file, offset, bytes: Math.min(piece_bytes, bytes - offset), sha256 };
    }),
  );
}

async function readVerified(range, shards, signal) {
  for (;;) {
    const bytes = await shards.read(range, signal);
    const found = await sha256(bytes);
    if (found === range.sha256) return shards.verified?.(range, bytes);
    if (!(await shards.refused?.(range, found))) {
      throw fail('hash_mismatch', `${range.file}: expected ${range.sha256}, found ${found}`);
    }
  }
}

const sum = (ranges) => ranges.reduce((bytes, range) => bytes + range.bytes, 0);

class FakeEngine {
  version = '0.1.0';
  kernelClosure = 'a'.repeat(64);
  info = null;
  sessions = new Set();
  counts = { buffers: 0, pipelines: 0 };

  constructor(target, profile, options) {
    Object.assign(this, { target, profile, options });
    this.drafts = target === 'mtp' ? 2 : 0;
  }

  async plan(manifest, { context = 100 } = {}) {
    const ranges = rangesOf(manifest);
    return {
      context,
      drafts: this.drafts,
      downloadBytes: sum(ranges),
      weightBytes: 9_000_000,
      scratchBytes: 1_000_000,
      sequenceBytes: 500_000,
      largestBuffer: { name: 'embedding', bytes: 2_000_000 },
      limits: { maxBufferBytes: 1 << 30, maxBindingBytes: 1 << 30 },
      adapter: { name: 'fake', vendor: '', software: true, tiers: [], timestamps: this.profile },
      refusal: null,
      ranges,
    };
  }

  async load(manifest, shards, tokenizer) {
    const { target, profile, options, drafts } = this;
    calls.push({ target, profile, options, tokenizer: text(tokenizer) });
    if (options.artifact && options.artifact !== (await sha256(manifest))) {
      throw fail('hash_mismatch', `manifest.json: expected ${options.artifact}`);
    }
    const ranges = rangesOf(manifest);
    const total = sum(ranges);
    let done = 0;
    for (const range of ranges) {
      options.signal?.throwIfAborted();
      await readVerified(range, shards, options.signal);
      done += range.bytes;
      options.onProgress?.({ phase: 'weights', done, total });
    }
    Object.assign(this.counts, { buffers: 10, pipelines: 5 });
    this.info = { adapter: 'fake', context: 100, drafts, loadMs: 1, compileMs: 2 };
    return this.info;
  }

  async session() {
    const session = new FakeSession(this.drafts, this.counts);
    this.sessions.add(session);
    this.counts.buffers++;
    return session;
  }

  encode(prompt) {
    return Array.from(prompt, (character) => character.codePointAt(0));
  }

  encodeChat(messages) {
    return this.encode(messages.at(-1).content);
  }

  census() {
    return { ...this.counts };
  }

  async unload() {
    for (const session of this.sessions) session.abort();
    this.counts.buffers = 0;
    this.info = null;
  }
}

class FakeSession {
  running = false;
  words = [];
  said = '';
  saidWords = 0;
  stop = 'length';
  rounds = 0;
  timeline = [];
  steps = 0;

  constructor(most, counts) {
    Object.assign(this, { most, counts, drafts: most });
  }

  start(prompt, options = {}) {
    if (this.running) throw fail('internal', 'two generations at once');
    if (prompt.length === 0) throw fail('invalid_argument', 'the prompt is empty');
    calls.push({ start: options });
    this.drafts = options.mtp === 'off' ? 0 : this.most;
    this.timeline = [...prompt];
    this.words = String.fromCodePoint(...prompt)
      .split(' ')
      .flatMap((word) => (word === 'huge' ? Array(1e6).fill('x') : [word]));
    this.said = '';
    this.saidWords = 0;
    this.rounds = 0;
    this.running = true;
  }

  async step() {
    if (this.steps > 0) throw fail('internal', 'two steps at once');
    this.steps++;
    await turn();
    this.steps--;
    if (!this.running) return '';
    this.rounds++;
    const words = this.words.slice(this.saidWords, this.saidWords + 1 + this.drafts / 2);
    this.saidWords += words.length;
    if (words.includes('lose')) {
      this.running = false;
      throw fail('device_lost', 'the device is gone: load again');
    }
    if (this.saidWords === this.words.length) this.#end('stop_id');
    const piece = words.join(' ') + (this.running ? ' ' : '');
    this.said += piece;
    return piece;
  }

  abort() {
    if (this.running) this.#end('aborted');
    return '';
  }

  #end(stop) {
    this.running = false;
    this.stop = stop;
  }

  stats() {
    const { rounds, drafts, saidWords } = this;
    return {
      promptTokens: this.timeline.length,
      reusedTokens: 0,
      rounds,
      generatedTokens: saidWords,
      drafted: drafts ? [rounds, rounds] : [0, 0],
      accepted: drafts ? [rounds, 0] : [0, 0],
      acceptance: drafts ? 0.5 : 0,
      tokensPerRound: 1 + drafts / 2,
      firstTokenMs: 1,
      decodeMs: rounds,
      decodeTokensPerSecond: 1000 * (1 + drafts / 2),
    };
  }

  generation() {
    const { said: text, stop } = this;
    return { ids: Array.from(text, (c) => c.codePointAt(0)), text, stop, stats: this.stats() };
  }

  ids() {
    return [...this.timeline];
  }

  nextPrompt(messages) {
    return Array.from(messages.at(-1).content, (character) => character.codePointAt(0));
  }

  reset() {
    this.timeline = [];
  }

  close() {
    this.counts.buffers--;
  }

  // As Chrome rounds them.
  times() {
    const shares = { linear: 3, attention: 2, argmax: 1 };
    return Object.entries(shares).map(([kernel, share]) => {
      return { kernel, calls: this.rounds, timeNs: share * 100_000, bytes: null };
    });
  }
}

export const factory =
  (target, profile) =>
  async (options = {}) =>
    new FakeEngine(target, profile, options);
