// What the tests of the built modules share: WebGPU under Node, the atlas in its folder, and its golden tokens.
import { open, readFile } from 'node:fs/promises';
import { dawnFeatures } from './dawn.mjs';

export { goldenIds } from './golden.mjs';

export const root = new URL('../../../', import.meta.url);

const webgpu = await import(new URL('web/node_modules/webgpu/index.js', root));
/** Dawn, with features that it has not by default, as 'a,b'; tools/run chooses the Vulkan driver. */
export const createGpu = (features) => webgpu.create(features ? [`enable-dawn-features=${features}`] : []);

export const gpu = createGpu(dawnFeatures);

/** The factory of a built module, such as 'gemma4_mtp.profile'. */
export async function factory(module) {
  return (await import(new URL(`build/web/${module}.js`, root))).default;
}

/** An artifact in a folder, as load() takes it. `change` may give other bytes for a range. */
export class Folder {
  constructor(folder, change = (range, bytes) => bytes) {
    this.folder = folder;
    this.change = change;
    this.reads = 0;
  }

  async read(range) {
    ++this.reads;
    const file = await open(new URL(range.file, this.folder));
    const bytes = new Uint8Array(range.bytes);
    await file.read(bytes, 0, range.bytes, range.offset);
    await file.close();
    return this.change(range, bytes);
  }
}

export const atlasFolder = new URL('models/atlas/', root);
export const atlas = {
  manifest: new Uint8Array(await readFile(new URL('manifest.json', atlasFolder))),
  tokenizer: new Uint8Array(await readFile(new URL('tokenizer.bin', atlasFolder))),
};

/** An engine that has loaded the atlas. */
export async function loaded(module, options = {}) {
  const engine = await (await factory(module))({ gpu, ...options });
  await engine.load(atlas.manifest, new Folder(atlasFolder), atlas.tokenizer);
  return engine;
}

/** Runs a generation to its end; gives it with its text in pieces. */
export async function generate(session, prompt, options) {
  session.start(prompt, options);
  const pieces = [];
  while (session.running) pieces.push(await session.step());
  return { ...session.generation(), pieces };
}
