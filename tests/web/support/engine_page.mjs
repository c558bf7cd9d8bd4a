// The built page and package with the real engine, and a blank page to drive it from.
import { launch, openPage } from './browser.mjs';
import { site } from './fake_site.mjs';
import { readmeExample } from './example.mjs';
import { serve } from './server.mjs';

export async function startEngine() {
  const example = Buffer.from(await readmeExample());
  const blank = Buffer.from('<!doctype html><link rel="icon" href="icon.svg">');
  const server = await serve(
    { '/': site },
    new Map([
      ['/blank.html', blank],
      ['/example.html', example],
      ['/favicon.ico', Buffer.alloc(0)], // which browsers ask for unasked
    ]),
  );
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
