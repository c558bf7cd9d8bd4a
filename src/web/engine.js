// The low-level API of web/low_level.d.ts, over the exports of exports.cpp: what takes time is awaited here, never in
// wasm. Runs last in a module.

(() => {
  // What an export returns, as in exports.cpp.
  const DONE = 0;
  const NOT_YET = 1;
  // Bytes that may be on their way to the GPU before the next piece waits for it.
  const MOST_BYTES_AHEAD = 64 << 20;

  const options = Object.assign({ powerPreference: 'high-performance', readAhead: 4 }, engineOptions);
  const encoder = new TextEncoder();
  const decoder = new TextDecoder();

  class TandemError extends Error {
    constructor(code, message) {
      super(message);
      this.name = 'TandemError';
      this.code = code;
    }
  }

  // Set when wasm has stopped in the middle of a call: nothing is known of its state.
  let stopped = null;

  // Calls an export with numbers, and with texts and arrays as pointer and length; gives its status.
  function call(name, ...values) {
    if (stopped) throw stopped;
    const owned = [];
    try {
      const flat = values.flatMap((value) => {
        if (typeof value === 'number') return [value];
        if (value === null) return [0, 0];
        const array = typeof value === 'string' ? encoder.encode(value) : value;
        const pointer = _malloc(array.byteLength || 1) >>> 0;
        owned.push(pointer);
        HEAPU8.set(new Uint8Array(array.buffer, array.byteOffset, array.byteLength), pointer);
        return [pointer, array.length];
      });
      HEAPF64[Module['_tandem_clock']() >>> 3] = performance.now();
      const status = Module[`_${name}`](...flat);
      for (const pointer of owned) _free(pointer);
      if (status === DONE || status === NOT_YET || status === undefined) return status;
    } catch (error) {
      stopped = new TandemError('internal', `the engine has stopped (${error.message}); make a new one`);
      throw stopped;
    }
    const { code, message } = JSON.parse(reply());
    throw new TandemError(code, message);
  }

  // What the last call said.
  function reply() {
    const at = Module['_tandem_reply']() >>> 2;
    const data = HEAPU32[at];
    return decoder.decode(HEAPU8.subarray(data, data + HEAPU32[at + 1]));
  }

  function ask(name, ...values) {
    call(name, ...values);
    return JSON.parse(reply());
  }

  // As JSON, with numbers beyond 2^53 as their digits.
  function json(value) {
    return JSON.stringify(value, (_, part) => (typeof part === 'bigint' ? String(part) : part));
  }

  function loadOptions(over) {
    const { context, inputBound, kv, activations, drafts, roundsInFlight, disabledTiers } = Object.assign({}, options, over);
    return json({ context, inputBound, kv, activations, drafts, roundsInFlight, disabledTiers });
  }

  const wasmInfo = () => ask('tandem_describe');

  // ---- Devices

  const LIMITS = [
    'maxBufferSize', 'maxStorageBufferBindingSize', 'maxComputeWorkgroupStorageSize',
    'maxComputeInvocationsPerWorkgroup', 'maxComputeWorkgroupsPerDimension', 'maxStorageBuffersPerShaderStage',
  ];
  const WORKGROUP_SIZES = ['maxComputeWorkgroupSizeX', 'maxComputeWorkgroupSizeY', 'maxComputeWorkgroupSizeZ'];

  const gpu = () => options.gpu || (typeof navigator === 'object' && navigator.gpu) || null;

  async function requestAdapter() {
    if (options.adapter) return options.adapter;
    if (!gpu()) {
      throw new TandemError('no_adapter',
        'no WebGPU here: expected navigator.gpu, which a browser has on https and localhost');
    }
    const adapter = await gpu().requestAdapter({ powerPreference: options.powerPreference });
    if (adapter) return adapter;
    throw new TandemError('no_adapter', 'WebGPU gives no adapter: the GPU or its driver may be blocked here');
  }

  // The limits of a device or an adapter, lowered to what the options ask for.
  function lowered(limits) {
    const asked = options.limits || {};
    const result = {};
    for (const name of Object.keys(asked)) {
      if (!LIMITS.includes(name) || !(asked[name] >= 1 && asked[name] <= limits[name])) {
        throw new TandemError('limit_exceeded', LIMITS.includes(name)
          ? `limit ${name} = ${asked[name]}, expected 1 to ${limits[name]} on this adapter`
          : `limit ${name}: expected one of ${LIMITS.join(', ')}`);
      }
    }
    for (const name of LIMITS) result[name] = asked[name] ?? limits[name];
    return result;
  }

  // What exports.cpp is told of a device, or of a device that the adapter could give.
  function description(source, info) {
    const has = (feature) => source.features.has(feature);
    const languageFeatures = gpu()?.wgslLanguageFeatures;
    const text = (part) => (info && info[part]) || '';
    // Emscripten 3.1.6 does not take spread properties.
    return Object.assign({
      name: text('device') || text('description') || text('architecture') || 'unnamed',
      vendor: text('vendor'),
      driver: text('description'),
      software: Boolean(info?.isFallbackAdapter) || /swiftshader|llvmpipe/i.test(
        ['architecture', 'device', 'description'].map(text).join(' ')),
      timestamps: has('timestamp-query'),
      subgroups: has('subgroups'),
      dp4a: Boolean(languageFeatures?.has('packed_4x8_integer_dot_product')),
      f16: has('shader-f16'),
      bindingAlignment: Math.max(source.limits.minStorageBufferOffsetAlignment,
        source.limits.minUniformBufferOffsetAlignment),
    }, lowered(source.limits));
  }

  // { device, owned, description }
  async function openDevice() {
    if (options.device) {
      const device = options.device;
      return { device, owned: false, description: description(device, options.adapter?.info || device.adapterInfo) };
    }
    const adapter = await requestAdapter();
    const off = options.disabledTiers || [];
    const wanted = [['subgroups', 'subgroups'], ['shader-f16', 'f16'], ['timestamp-query', 'timestamps']];
    const requiredFeatures = wanted
      .filter(([feature, tier]) => adapter.features.has(feature) && !off.includes(tier))
      .filter(([feature]) => feature !== 'timestamp-query' || wasmInfo().profile)
      .map(([feature]) => feature);
    const requiredLimits = lowered(adapter.limits);
    for (const name of WORKGROUP_SIZES) requiredLimits[name] = adapter.limits[name];
    try {
      const device = await adapter.requestDevice({ requiredFeatures, requiredLimits });
      return { device, owned: true, description: description(device, adapter.info) };
    } catch (error) {
      throw new TandemError('no_adapter', `the adapter gives no device: ${error.message}`);
    }
  }

  // ---- Loading

  const hex = (buffer) => Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, '0')).join('');

  // The bytes of a range, verified.
  async function verified(shards, range, signal) {
    for (let attempt = 0; ; ++attempt) {
      signal.throwIfAborted();
      const bytes = await shards.read(range, signal);
      if (!(bytes instanceof Uint8Array)) {
        throw new TandemError('invalid_argument', `${range.file}: shards.read gave no Uint8Array`);
      }
      const found = hex(await crypto.subtle.digest('SHA-256', bytes));
      if (found === range.sha256 && bytes.byteLength === range.bytes) {
        if (shards.verified) await shards.verified(range, bytes);
        return bytes;
      }
      if (attempt === 0 && shards.refused && (await shards.refused(range, found))) continue;
      if (bytes.byteLength !== range.bytes) {
        throw new TandemError('malformed_artifact',
          `${range.file}: expected ${range.bytes} bytes at ${range.offset}, found ${bytes.byteLength}`);
      }
      throw new TandemError('hash_mismatch', `${range.file}: ${range.bytes} bytes at ${range.offset}: expected sha256 ` +
        `${range.sha256}, found ${found}; fetch or export it again`);
    }
  }

  // Verified bytes of all ranges, in order, read ahead.
  async function* allVerified(shards, ranges, signal) {
    const ahead = [];
    let next = 0;
    const more = () => {
      if (next === ranges.length) return;
      const bytes = verified(shards, ranges[next++], signal);
      bytes.catch(() => {}); // it is thrown when its turn comes
      ahead.push(bytes);
    };
    for (let i = 0; i < Math.max(1, options.readAhead); ++i) more();
    while (ahead.length > 0) {
      const bytes = await ahead.shift();
      more();
      yield bytes;
    }
  }

  // Writes the parts of a piece, each [offset in the piece, bytes, buffer, offset there].
  function writePiece(bytes, writes) {
    const { queue, buffers } = TandemGpu.open;
    for (const [from, count, buffer, offset] of writes) {
      const whole = count & ~3;
      if (whole > 0) queue.writeBuffer(buffers[buffer], offset, bytes, from, whole);
      if (whole === count) continue;
      // The end of a plane, whose buffer is padded.
      const last = new Uint8Array(4);
      last.set(bytes.subarray(from + whole, from + count));
      queue.writeBuffer(buffers[buffer], offset + whole, last);
    }
  }

  async function writeWeights(shards, ranges, pieces, signal) {
    const total = ranges.reduce((sum, range) => sum + range.bytes, 0);
    let done = 0;
    let ahead = 0;
    let piece = 0;
    for await (const bytes of allVerified(shards, ranges, signal)) {
      signal.throwIfAborted();
      const { writes, watched } = pieces[piece++];
      for (const [from, count] of watched) call('tandem_watch', bytes.subarray(from, from + count));
      writePiece(bytes, writes);
      done += bytes.byteLength;
      ahead += bytes.byteLength;
      if (ahead >= MOST_BYTES_AHEAD) {
        ahead = 0;
        await TandemGpu.open.queue.onSubmittedWorkDone();
      }
      if (options.onProgress) options.onProgress({ phase: 'weights', done, total });
    }
    return performance.now();
  }

  // Compiles and tries the kernels, and sees to the buffers.
  async function prepare(signal) {
    while (call('tandem_prepare') === NOT_YET) {
      if (options.onProgress) {
        const { compiled, compiling } = TandemGpu.open;
        options.onProgress({ phase: 'kernels', done: compiled, total: compiled + compiling });
      }
      await TandemGpu.progress();
      signal.throwIfAborted();
    }
  }

  let info = null;
  let loading = null; // { controller, ended } of the load under way

  function close() {
    info = null;
    if (!stopped) Module['_tandem_close']();
    TandemGpu.close(); // where wasm never got the device
  }

  async function loadAll(manifest, shards, tokenizer, signal) {
    const { artifact, file, pieces } = ask('tandem_begin', manifest, loadOptions());
    if (options.artifact && options.artifact !== artifact) {
      throw new TandemError('hash_mismatch',
        `manifest.json: expected sha256 ${options.artifact}, found ${artifact}; fetch it again`);
    }
    const generationConfig = file && (await verified(shards, file, signal));
    const { device, owned, description } = await openDevice();
    if (signal.aborted && owned) device.destroy();
    signal.throwIfAborted();
    TandemGpu.adopt(device, owned);
    const start = performance.now();
    const targets = ask('tandem_open', tokenizer, generationConfig, json(description));
    const [written] = await Promise.all([writeWeights(shards, pieces, targets, signal), prepare(signal)]);
    return ask('tandem_finish', written - start);
  }

  Module['load'] = async (manifest, shards, tokenizer) => {
    if (info || loading) {
      throw new TandemError('invalid_argument', 'the engine is loaded already; unload it first');
    }
    const controller = new AbortController();
    const { signal } = controller;
    const abort = () => controller.abort(options.signal.reason);
    let ended;
    loading = { controller, ended: new Promise((resolve) => (ended = resolve)) };
    try {
      if (options.signal) {
        options.signal.throwIfAborted();
        options.signal.addEventListener('abort', abort);
      }
      // A signal ends the wait at once, whatever it is that the load waits for.
      const aborted = new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason));
      });
      aborted.catch(() => {});
      info = await Promise.race([loadAll(manifest, shards, tokenizer, signal), aborted]);
      return info;
    } catch (error) {
      controller.abort(error);
      close();
      throw error;
    } finally {
      if (options.signal) options.signal.removeEventListener('abort', abort);
      loading = null;
      ended();
    }
  };

  Module['unload'] = async () => {
    if (loading) {
      const { controller, ended } = loading;
      controller.abort(new TandemError('invalid_argument', 'the engine was unloaded while it was loading'));
      await ended;
    }
    close();
  };

  Module['plan'] = async (manifest, over) => {
    const source = options.device || (await requestAdapter());
    const described = description(source, options.adapter?.info || source.info || source.adapterInfo);
    const off = options.disabledTiers || [];
    const tiers = ['subgroups', 'dp4a', 'f16'].filter((tier) => described[tier] && !off.includes(tier));
    const plan = ask('tandem_plan', manifest, loadOptions(over), json(described));
    const { name, vendor, driver, software, timestamps } = described;
    plan.adapter = { name, vendor, driver, software, tiers: ['base', ...tiers], timestamps };
    plan.limits = {
      maxBufferBytes: described.maxBufferSize,
      maxBindingBytes: described.maxStorageBufferBindingSize,
    };
    return plan;
  };

  // ---- Sessions

  function ids(values) {
    const array = Uint32Array.from(values);
    for (let i = 0; i < array.length; ++i) {
      if (array[i] !== values[i]) {
        throw new TandemError('malformed_text', `token id ${values[i]} at [${i}]: expected an integer of 32 bits`);
      }
    }
    return array;
  }

  function makeSession(number) {
    const session = {
      start(prompt, generateOptions = {}) {
        call('tandem_start', number, ids(prompt), json(generateOptions));
      },
      get running() {
        return !stopped && Module['_tandem_running'](number) !== 0;
      },
      poll() {
        return call('tandem_step', number) === NOT_YET ? false : reply();
      },
      async step() {
        for (;;) {
          const piece = session.poll();
          if (piece !== false) return piece;
          await TandemGpu.progress();
          if (!session.running && !TandemGpu.open?.lost) return '';
        }
      },
      abort() {
        call('tandem_abort', number);
        return reply();
      },
      stats: () => ask('tandem_stats', number),
      generation: () => ask('tandem_generation', number),
      ids: () => ask('tandem_ids', number),
      nextPrompt: (messages) => ask('tandem_next_prompt', number, json(messages)),
      reset() {
        call('tandem_reset', number);
      },
      close() {
        if (!stopped) Module['_tandem_session_close'](number);
      },
      times: () => ask('tandem_times', number),
    };
    return session;
  }

  Module['session'] = async () => {
    const number = ask('tandem_session');
    try {
      while (call('tandem_session_prepare', number) === NOT_YET) await TandemGpu.progress();
    } catch (error) {
      if (!stopped) Module['_tandem_session_close'](number);
      throw error;
    }
    return makeSession(number);
  };

  Module['check'] = (generateOptions) => {
    call('tandem_check', json(generateOptions));
  };
  Module['encode'] = (text) => ask('tandem_encode', text);
  Module['encodeChat'] = (messages) => ask('tandem_encode_chat', json(messages));

  Module['census'] = () => {
    const { crossings, submissions, dispatches, open } = TandemGpu;
    const buffers = open ? open.buffers.filter(Boolean) : [];
    return {
      buffers: buffers.length + (open?.stagingBuffers ?? 0),
      bufferBytes: buffers.reduce((sum, buffer) => sum + buffer.size, open?.stagingBytes ?? 0),
      pipelines: open?.compiled ?? 0,
      submissions,
      dispatches,
      crossings,
      heapBytes: HEAPU8.length,
    };
  };

  for (const name of ['version', 'kernelClosure', 'target', 'profile']) {
    Object.defineProperty(Module, name, { get: () => wasmInfo()[name], enumerable: true });
  }
  Object.defineProperty(Module, 'info', { get: () => info, enumerable: true });
})();
