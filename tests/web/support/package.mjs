// Where the built package lies.
export const dist = new URL('../../../build/web-package/dist/', import.meta.url);
export const load = (module) => import(new URL(module, dist));
