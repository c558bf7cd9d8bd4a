// The device of web.cpp on navigator.gpu: an Emscripten library. Numbers of buffers, kernels and bind groups are
// web.cpp's. Pointers come as signed numbers; `>>> 0` makes them indices.

mergeInto(LibraryManager.library, {
  $TandemGpu__deps: ['$TandemTiming'],
  $TandemGpu: {
    // What an event is about, and what went wrong: as in web.cpp.
    BUFFER: 0, KERNEL: 1, ERROR: 2, LOSS: 3,
    NO_ERROR: -1, OUT_OF_MEMORY: 0, VALIDATION: 1, INTERNAL: 2,

    // What is open: a device and all that was made on it. Callbacks of one that was closed do nothing.
    open: null,
    // How often wasm has called.
    crossings: 0, submissions: 0, dispatches: 0,

    /** Takes a device over. `owned`: destroyed when it is closed. */
    adopt: (device, owned) => {
      const state = {
        device, owned, queue: device.queue,
        buffers: [], pipelines: [], groups: [], kernelLayouts: [],
        layouts: new Map(), modules: new Map(), staging: [],
        stagingBuffers: 0, stagingBytes: 0,
        compiling: 0, compiled: 0,
        // What waits for the next thing to happen.
        waiting: [],
      };
      state.onError = (event) => {
        event.preventDefault?.();
        TandemGpu.report(state, TandemGpu.ERROR, 0, event.error);
      };
      device.addEventListener('uncapturederror', state.onError);
      device.lost.then((info) => {
        state.lost = info.message || info.reason || 'no reason given';
        TandemGpu.report(state, TandemGpu.LOSS, 0, { message: state.lost });
      });
      TandemGpu.open = state;
    },

    close: () => {
      const state = TandemGpu.open;
      if (!state) return;
      TandemGpu.open = null;
      state.device.removeEventListener('uncapturederror', state.onError);
      for (const buffer of state.buffers) buffer?.destroy();
      for (const idle of state.staging) idle.buffer.destroy();
      if (state.owned) state.device.destroy();
      TandemGpu.wake(state);
    },

    wake: (state) => {
      const waiting = state.waiting;
      state.waiting = [];
      for (const resolve of waiting) resolve();
    },

    /** A promise of the next event, copied readback or loss. */
    progress: () => {
      const state = TandemGpu.open;
      return new Promise((resolve) => (state ? state.waiting.push(resolve) : resolve()));
    },

    /** Tells web.cpp of an event, with the GPUError that it ended with, if it did. */
    report: (state, kind, number, error) => {
      if (TandemGpu.open !== state) return;
      let code = TandemGpu.NO_ERROR;
      let text = 0;
      let bytes = 0;
      if (error) {
        const name = error.constructor?.name;
        code = name === 'GPUOutOfMemoryError' ? TandemGpu.OUT_OF_MEMORY
          : name === 'GPUInternalError' || error.reason === 'internal' ? TandemGpu.INTERNAL
          : TandemGpu.VALIDATION;
        const message = new TextEncoder().encode(error.message);
        bytes = message.length;
        text = _malloc(bytes || 1) >>> 0;
        HEAPU8.set(message, text);
      }
      _tandem_gpu_event(kind, number, code, text, bytes);
      if (text) _free(text);
      TandemGpu.wake(state);
    },

    // Whether the device is lost. What a loss makes fail may fail before the loss is told.
    isLost: (state) => Promise.race([
      state.device.lost.then(() => true),
      new Promise((resolve) => setTimeout(() => resolve(false), 100)),
    ]),

    /** The same of what was rejected: a loss is an event of its own. */
    reportRejection: async (state, kind, number, error) => {
      TandemGpu.report(state, kind, number, (await TandemGpu.isLost(state)) ? null : error);
    },

    text: (pointer, bytes) => {
      pointer >>>= 0;
      return new TextDecoder().decode(HEAPU8.subarray(pointer, pointer + bytes));
    },

    // The layouts of kernels that bind alike are one.
    layout: (state, accesses) => {
      const key = accesses.join();
      let layout = state.layouts.get(key);
      if (!layout) {
        const types = ['uniform', 'read-only-storage', 'storage'];
        const bindGroup = state.device.createBindGroupLayout({
          entries: accesses.map((access, binding) => ({
            binding, visibility: 4 /* COMPUTE */, buffer: { type: types[access] },
          })),
        });
        layout = { bindGroup, pipeline: state.device.createPipelineLayout({ bindGroupLayouts: [bindGroup] }) };
        state.layouts.set(key, layout);
      }
      return layout;
    },

    // A shader module and the error of its text, if it has one.
    module: (state, label, source) => {
      let made = state.modules.get(label);
      if (!made) {
        state.device.pushErrorScope('validation');
        const module = state.device.createShaderModule({ label, code: source });
        made = { module, error: state.device.popErrorScope() };
        state.modules.set(label, made);
      }
      return made;
    },

    takeStaging: (state, bytes) => {
      const at = state.staging.findIndex((idle) => idle.bytes >= bytes);
      if (at >= 0) return state.staging.splice(at, 1)[0];
      ++state.stagingBuffers;
      state.stagingBytes += bytes;
      return { bytes, buffer: state.device.createBuffer({ label: 'readback', size: bytes, usage: 1 | 8 }) };
    },

    /** Copies a staging buffer to linear memory, once it is there, and then sets the word `outcome`. */
    copyOut: async (state, staging, bytes, target, outcome) => {
      let result = 1;
      try {
        await staging.buffer.mapAsync(1 /* READ */, 0, bytes);
        if (TandemGpu.open !== state) return;
        HEAPU8.set(new Uint8Array(staging.buffer.getMappedRange(0, bytes)), target);
        staging.buffer.unmap();
        state.staging.push(staging);
      } catch (error) {
        await TandemGpu.isLost(state);
        result = 2;
      }
      if (TandemGpu.open !== state) return;
      HEAPU32[outcome >>> 2] = result;
      TandemGpu.wake(state);
    },
  },

  // Makes a zero-filled buffer; an event says when it is there.
  tandem_gpu_make_buffer__deps: ['$TandemGpu'],
  tandem_gpu_make_buffer: function (number, bytes, label, labelBytes) {
    ++TandemGpu.crossings;
    const state = TandemGpu.open;
    const device = state.device;
    device.pushErrorScope('validation');
    device.pushErrorScope('out-of-memory');
    state.buffers[number] = device.createBuffer({
      label: TandemGpu.text(label, labelBytes), size: bytes,
      usage: 4 | 8 | 64 | 128, // COPY_SRC, COPY_DST, UNIFORM, STORAGE
    });
    const errors = [device.popErrorScope(), device.popErrorScope()];
    Promise.all(errors).then(
      (found) => TandemGpu.report(state, TandemGpu.BUFFER, number, found.find((error) => error)),
      (error) => TandemGpu.reportRejection(state, TandemGpu.BUFFER, number, error),
    );
  },

  tandem_gpu_free_buffer__deps: ['$TandemGpu'],
  tandem_gpu_free_buffer: function (number) {
    ++TandemGpu.crossings;
    TandemGpu.open.buffers[number].destroy();
    delete TandemGpu.open.buffers[number];
  },

  tandem_gpu_write__deps: ['$TandemGpu'],
  tandem_gpu_write: function (number, offset, bytes, count) {
    ++TandemGpu.crossings;
    const state = TandemGpu.open;
    state.queue.writeBuffer(state.buffers[number], offset, HEAPU8, bytes >>> 0, count);
  },

  // Compiles a kernel; an event says when that is done. `accesses` has a byte for each binding.
  tandem_gpu_compile__deps: ['$TandemGpu'],
  tandem_gpu_compile: function (number, label, labelBytes, source, sourceBytes, accesses, bindings, constants, constantsBytes) {
    ++TandemGpu.crossings;
    const state = TandemGpu.open;
    const name = TandemGpu.text(label, labelBytes);
    accesses >>>= 0;
    const layout = TandemGpu.layout(state, Array.from(HEAPU8.subarray(accesses, accesses + bindings)));
    const { module, error } = TandemGpu.module(state, name, TandemGpu.text(source, sourceBytes));
    state.kernelLayouts[number] = layout.bindGroup;
    ++state.compiling;
    const pipeline = state.device.createComputePipelineAsync({
      label: name, layout: layout.pipeline,
      compute: { module, entryPoint: 'main', constants: JSON.parse(TandemGpu.text(constants, constantsBytes)) },
    });
    // The error of the text says more than that of the pipeline.
    pipeline.then(
      (made) => {
        state.pipelines[number] = made;
        --state.compiling;
        ++state.compiled;
        TandemGpu.report(state, TandemGpu.KERNEL, number, null);
      },
      (refused) => error.then((found) => found, () => null).then((found) => {
        TandemGpu.reportRejection(state, TandemGpu.KERNEL, number, found || refused);
      }),
    );
  },

  // Makes a bind group of { buffer, offset, bytes } for each binding, three doubles.
  tandem_gpu_bind__deps: ['$TandemGpu'],
  tandem_gpu_bind: function (group, kernel, entries, bindings) {
    ++TandemGpu.crossings;
    const state = TandemGpu.open;
    const at = entries >>> 3;
    state.groups[group] = state.device.createBindGroup({
      layout: state.kernelLayouts[kernel],
      entries: Array.from({ length: bindings }, (_, binding) => ({
        binding,
        resource: {
          buffer: state.buffers[HEAPF64[at + 3 * binding]],
          offset: HEAPF64[at + 3 * binding + 1],
          size: HEAPF64[at + 3 * binding + 2],
        },
      })),
    });
  },

  tandem_gpu_unbind__deps: ['$TandemGpu'],
  tandem_gpu_unbind: function (group) {
    ++TandemGpu.crossings;
    delete TandemGpu.open.groups[group];
  },

  // Replays a submission: how dispatches share passes (0 one pass, 1 one each, 2 one each between timestamps), their
  // count, { kernel, group, x, y } of each; then { buffer, offset low, offset high } of what is read back, and the
  // bytes that come out, timestamps first; if there are any, where to, and the word that says when.
  tandem_gpu_submit__deps: ['$TandemGpu'],
  tandem_gpu_submit: function (pointer) {
    ++TandemGpu.crossings;
    ++TandemGpu.submissions;
    const state = TandemGpu.open;
    const { pipelines, groups } = state;
    const words = HEAPU32;
    let at = pointer >>> 2;
    const passes = words[at++];
    const count = words[at++];
    TandemGpu.dispatches += count;
    const encoder = state.device.createCommandEncoder();
    const timing = passes === 2 ? TandemTiming.make(state.device, count) : null;
    let pass = null;
    for (let i = 0; i < count; ++i, at += 4) {
      if (!pass) pass = encoder.beginComputePass(timing ? TandemTiming.pass(timing, i) : undefined);
      pass.setPipeline(pipelines[words[at]]);
      pass.setBindGroup(0, groups[words[at + 1]]);
      pass.dispatchWorkgroups(words[at + 2], words[at + 3]);
      if (passes !== 0) {
        pass.end();
        pass = null;
      }
    }
    if (pass) pass.end();
    const source = words[at];
    const offset = words[at + 1] + words[at + 2] * 2 ** 32;
    const bytes = words[at + 3];
    let staging = null;
    if (bytes > 0) {
      staging = TandemGpu.takeStaging(state, bytes);
      const first = timing ? TandemTiming.resolve(timing, encoder, staging.buffer) : 0;
      if (source) encoder.copyBufferToBuffer(state.buffers[source], offset, staging.buffer, first, bytes - first);
    }
    state.queue.submit([encoder.finish()]);
    if (timing) TandemTiming.free(timing);
    if (staging) TandemGpu.copyOut(state, staging, bytes, words[at + 4], words[at + 5]);
  },

  // Destroys the device as a lost one would be (tests).
  tandem_gpu_lose__deps: ['$TandemGpu'],
  tandem_gpu_lose: function () {
    ++TandemGpu.crossings;
    TandemGpu.open.device.destroy();
  },

  tandem_gpu_close__deps: ['$TandemGpu'],
  tandem_gpu_close: function () {
    ++TandemGpu.crossings;
    TandemGpu.close();
  },
});
