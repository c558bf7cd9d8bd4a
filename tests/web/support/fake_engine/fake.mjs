// An engine without a GPU, behind the low-level API: it repeats the prompt's words, two of them a round with
// drafts. For tests of what lies above the engine. A prompt's word "lose" loses the device, "huge" has no end.
const fail = (code, message) =>
  Object.assign(new Error(message), { name: "TandemError", code });
const turn = () => new Promise((resolve) => setTimeout(resolve, 1));
const text = (bytes) => new TextDecoder().decode(bytes);

export const calls = [];

export const factory =
  (target, profile) =>
  async (given = {}) => {
    let options = given;
    let info = null;
    const sessions = new Set();
    const counts = { buffers: 0, pipelines: 0 };

    async function verified(range, shards) {
      for (;;) {
        const bytes = await shards.read(range, options.signal);
        const digest = new Uint8Array(
          await crypto.subtle.digest("SHA-256", bytes),
        );
        const found = Array.from(digest, (byte) =>
          byte.toString(16).padStart(2, "0"),
        ).join("");
        if (found === range.sha256) return shards.verified?.(range, bytes);
        if (!(await shards.refused?.(range, found))) {
          throw fail(
            "hash_mismatch",
            `${range.file}: expected ${range.sha256}, found ${found}`,
          );
        }
      }
    }

    return {
      version: "0.1.0",
      kernelClosure: "a".repeat(64),
      target,
      profile,
      get info() {
        return info;
      },
      async plan(manifest, more = {}) {
        const { ranges } = JSON.parse(text(manifest));
        return { context: 100, ...more, ranges, refusal: null };
      },
      async load(manifest, shards, tokenizer) {
        calls.push({ target, profile, options, tokenizer: text(tokenizer) });
        const { ranges } = JSON.parse(text(manifest));
        const total = ranges.reduce((sum, range) => sum + range.bytes, 0);
        for (let i = 0, done = 0; i < ranges.length; i++) {
          options.signal?.throwIfAborted();
          await verified(ranges[i], shards);
          options.onProgress?.({
            phase: "weights",
            done: (done += ranges[i].bytes),
            total,
          });
        }
        counts.buffers = 10;
        counts.pipelines = 5;
        return (info = {
          adapter: "fake",
          context: 100,
          drafts: target === "mtp" ? 2 : 0,
        });
      },
      async session() {
        const session = fakeSession(info.drafts, counts);
        sessions.add(session);
        counts.buffers++;
        return session;
      },
      encode: (prompt) =>
        Array.from(prompt, (character) => character.codePointAt(0)),
      encodeChat: (messages) =>
        Array.from(messages.at(-1).content, (c) => c.codePointAt(0)),
      census: () => ({ ...counts }),
      async unload() {
        for (const session of sessions) if (session.running) session.abort();
        counts.buffers = 0;
        info = null;
      },
    };
  };

function fakeSession(drafts, counts) {
  let words = [];
  let said = "";
  let running = false;
  let stop = "length";
  let rounds = 0;
  let timeline = [];
  let steps = 0;
  const session = {
    start(prompt, options = {}) {
      if (running) throw fail("internal", "two generations at once");
      if (prompt.length === 0)
        throw fail("invalid_argument", "the prompt is empty");
      calls.push({ start: options });
      timeline = [...prompt];
      const all = String.fromCodePoint(...prompt).split(" ");
      words = all.flatMap((word) =>
        word === "huge" ? Array(1e6).fill("x") : [word],
      );
      words = words.slice(0, options.maxTokens ?? 256);
      [said, rounds, running] = ["", 0, true];
    },
    get running() {
      return running;
    },
    async step() {
      if (++steps > 1) throw fail("internal", "two steps at once");
      await turn();
      steps--;
      if (!running) return "";
      rounds++;
      const piece =
        words.splice(0, 1 + drafts / 2).join(" ") + (words.length ? " " : "");
      if (piece.includes("lose")) {
        running = false;
        throw fail("device_lost", "the device is gone: load again");
      }
      if (words.length === 0) [running, stop] = [false, "stop_id"];
      said += piece;
      return piece;
    },
    abort() {
      if (!running) return "";
      [running, stop] = [false, "aborted"];
      return "";
    },
    stats: () => ({
      rounds,
      generatedTokens: said.split(" ").filter(Boolean).length,
    }),
    generation: () => ({ ids: [], text: said, stop, stats: session.stats() }),
    ids: () => [...timeline],
    nextPrompt: (messages) =>
      Array.from(messages.at(-1).content, (c) => c.codePointAt(0)),
    reset: () => void (timeline = []),
    close: () => void counts.buffers--,
    times: () => [],
  };
  return session;
}
