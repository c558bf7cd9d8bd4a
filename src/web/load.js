// Runs first in a module: how it gets its wasm. The object that the factory was given are the engine's options; the
// module, which the factory's promise gives, is an object of its own.

const engineOptions = Module;
Module = {};
// Unused, as the wasm is found below. Without it Emscripten makes a URL beside the module's own, and throws where that
// is a blob.
Module['locateFile'] = (file) => file;

Module['instantiateWasm'] = (imports, done) => {
  const name = _scriptDir.replace(/[?#].*$/, '').replace(/\.js$/, '.wasm');
  const file = name.slice(name.lastIndexOf('/') + 1);
  const url = engineOptions['locateFile'] ? engineOptions['locateFile'](file) : name;
  const fetched = async () => {
    if (url.startsWith('file:')) return process.getBuiltinModule('fs').readFileSync(new URL(url));
    const response = await fetch(url, { signal: engineOptions['signal'] });
    if (!response.ok) throw new Error(`${url}: ${response.status} ${response.statusText}`);
    return response.arrayBuffer();
  };
  const binary = engineOptions['wasmBinary'];
  (binary ? Promise.resolve(binary) : fetched())
    .then((bytes) => WebAssembly.instantiate(bytes, imports))
    .then((result) => done(result.instance, result.module))
    .catch(readyPromiseReject);
  return {};
};
