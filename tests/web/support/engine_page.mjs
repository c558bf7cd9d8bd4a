// The built page and package with the real engine, and a blank page to drive it from.
import { launch, openPage } from './browser.mjs';
import { serveBuiltSite } from './site.mjs';

export async function startEngine() {
  const server = await serveBuiltSite();
  const browser = await launch();
  const context = await browser.newContext();
  return {
    server,
    context,
    async open(path = '/blank.html') {
      const page = await openPage(context, `${server.origin}${path}`);
      page.setDefaultTimeout(600_000); // a software adapter on a busy machine compiles for minutes
      return page;
    },
    async close() {
      await browser.close();
      await server.close();
    },
  };
}

/** Loads the atlas as `window.model` and sets `window.generate(ids, options)`, which gives the result. */
export async function loadAtlas(page, options = {}) {
  return page.evaluate(async (options) => {
    const { Tandem } = await import('/tandem/index.js');
    window.Tandem = Tandem;
    window.model = await Tandem.load('/atlas', options);
    window.generate = (session, ids, options) =>
      session.generate(Uint32Array.from(ids), { ignoreEos: true, temperature: 0, ...options }).result;
    return { info: window.model.info, engine: window.model.engine };
  }, options);
}
