// Timestamps of the passes of a submission, in profile builds: an Emscripten library.

mergeInto(LibraryManager.library, {
  $TandemTiming: {
    // The most queries that WebGPU grants a set; a pass takes two.
    QUERIES: 4096,

    make: (device, passes) => {
      const sets = [];
      for (let left = 2 * passes; left > 0; left -= TandemTiming.QUERIES) {
        sets.push(device.createQuerySet({ type: 'timestamp', count: Math.min(left, TandemTiming.QUERIES) }));
      }
      // QUERY_RESOLVE, COPY_SRC
      return { sets, results: device.createBuffer({ label: 'timestamps', size: 16 * passes, usage: 512 | 4 }) };
    },

    pass: (timing, pass) => {
      const query = 2 * pass;
      return {
        timestampWrites: {
          querySet: timing.sets[Math.floor(query / TandemTiming.QUERIES)],
          beginningOfPassWriteIndex: query % TandemTiming.QUERIES,
          endOfPassWriteIndex: (query % TandemTiming.QUERIES) + 1,
        },
      };
    },

    /** Copies all timestamps to the beginning of `target`; gives their bytes. */
    resolve: (timing, encoder, target) => {
      timing.sets.forEach((set, i) => {
        encoder.resolveQuerySet(set, 0, set.count, timing.results, i * TandemTiming.QUERIES * 8);
      });
      encoder.copyBufferToBuffer(timing.results, 0, target, 0, timing.results.size);
      return timing.results.size;
    },

    free: (timing) => {
      for (const set of timing.sets) set.destroy();
      timing.results.destroy();
    },
  },
});
