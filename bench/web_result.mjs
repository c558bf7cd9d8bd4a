// What a measurement of the browser's modules says of its origin, as `tandem bench --json` does.

/** `info` is the engine's; `commit` that of the modules. Options are the defaults. */
export function result(kind, command, commit, info) {
  return {
    schema: 1,
    kind,
    command,
    commit,
    date: `${new Date().toISOString().slice(0, 19)}Z`,
    artifact: { name: 'atlas', digest: info.artifact, synthetic: false, weight_bytes: info.weightBytes },
    device: {
      adapter: info.adapter,
      software: info.software,
      driver: info.driver,
      library: info.library,
      tiers: info.tiers,
      kernel_closure: info.kernelClosure,
    },
    options: {
      kv: 'f16',
      context: info.context,
      input_bound: info.inputBound,
      rounds_in_flight: 4,
      pass_per_dispatch: false,
    },
  };
}
