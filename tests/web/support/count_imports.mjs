/**
 * Counts the calls of each import of the modules that are made until `restore` is called. Refers to nothing around it,
 * so that a test can run its text in a page.
 */
export function countImports() {
  const counts = new Map();
  const instantiate = WebAssembly.instantiate;
  const counted = (name, value) =>
    typeof value !== 'function'
      ? value
      : (...values) => {
          counts.set(name, (counts.get(name) ?? 0) + 1);
          return value(...values);
        };
  WebAssembly.instantiate = (bytes, imports) => {
    const wrapped = Object.entries(imports).map(([module, functions]) => [
      module,
      Object.fromEntries(Object.entries(functions).map(([name, value]) => [name, counted(name, value)])),
    ]);
    return instantiate(bytes, Object.fromEntries(wrapped));
  };
  return { counts, restore: () => (WebAssembly.instantiate = instantiate) };
}
