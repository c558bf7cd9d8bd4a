// What a release does not bind is refused in a browser before it runs: of the built engine, and of the made-up one.
import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { launch, openPage } from '../support/browser.mjs';
import { sha256 } from '../support/bytes.mjs';
import { canonical } from '../support/fake_release.mjs';
import { serveBuiltSite, serveFakeSite } from '../support/site.mjs';

const engine = (name) => `/tandem/engine/${name}`;
const rebound = (files, change) => {
  const release = JSON.parse(files.get('/release.json'));
  change(release);
  files.set('/release.json', Buffer.from(canonical(release)));
};

const changes = [
  ['a changed js', 'hash_mismatch', (files) => files.set(engine('gemma4_mtp.js'), Buffer.from('x'))],
  [
    'a changed wasm of the same size',
    'hash_mismatch',
    (files) => {
      const bytes = Buffer.from(files.get(engine('gemma4_mtp.wasm')));
      bytes[bytes.length - 1] ^= 1;
      files.set(engine('gemma4_mtp.wasm'), bytes);
    },
  ],
  ['a missing js', 'not_found', (files) => files.set(engine('gemma4_mtp.js'), undefined)],
  ['a missing wasm', 'not_found', (files) => files.set(engine('gemma4_mtp.wasm'), undefined)],
  ['no release.json', 'not_found', (files) => files.set('/release.json', undefined)],
  [
    'the other target',
    'hash_mismatch',
    (files) => {
      for (const kind of ['js', 'wasm']) {
        files.set(engine(`gemma4_mtp.${kind}`), files.get(engine(`webgpu_llama.${kind}`)));
      }
    },
  ],
  [
    'the profile build for the wall build',
    'hash_mismatch',
    (files) => {
      for (const kind of ['js', 'wasm']) {
        files.set(engine(`gemma4_mtp.${kind}`), files.get(engine(`gemma4_mtp.profile.${kind}`)));
      }
    },
  ],
  [
    'one file of the profile build',
    'hash_mismatch',
    (files) => files.set(engine('gemma4_mtp.wasm'), files.get(engine('gemma4_mtp.profile.wasm'))),
  ],
  ['another artifact', 'hash_mismatch', (files) => rebound(files, (release) => (release.artifact = 'b'.repeat(64)))],
  // A release that is right about files which are not what they are there for.
  ['another version', 'bad_value', (files) => rebound(files, (release) => (release.engine = '9.9.9'))],
  [
    'other kernels',
    'bad_value',
    (files) => rebound(files, ({ targets }) => (targets.mtp.kernel_closure = 'b'.repeat(64))),
  ],
  [
    'a profile build bound as the wall build',
    'bad_value',
    (files) =>
      rebound(files, ({ targets: { mtp } }) => {
        for (const kind of ['js', 'wasm']) {
          const bytes = files.get(engine(`gemma4_mtp.profile.${kind}`));
          files.set(engine(`gemma4_mtp.${kind}`), bytes);
          Object.assign(mtp.wall[kind], { bytes: bytes.length, sha256: sha256(bytes) });
        }
      }),
  ],
  [
    'a plain build bound as the one with MTP',
    'bad_value',
    (files) =>
      rebound(files, ({ targets: { plain, mtp } }) => {
        mtp.kernel_closure = plain.kernel_closure;
        for (const kind of ['js', 'wasm']) {
          const bytes = files.get(engine(`webgpu_llama.${kind}`));
          files.set(engine(`gemma4_mtp.${kind}`), bytes);
          Object.assign(mtp.wall[kind], { bytes: bytes.length, sha256: sha256(bytes) });
        }
      }),
  ],
];

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser?.close());

for (const [which, serveSite] of [
  ['built', serveBuiltSite],
  ['made-up', serveFakeSite],
]) {
  describe(`the ${which} engine`, () => {
    let server, kept, page;
    before(async () => {
      server = await serveSite();
      kept = new Map(server.files);
      page = await openPage(await browser.newContext(), `${server.origin}/blank.html`);
    });
    after(() => server?.close());
    beforeEach(() => {
      server.files.clear();
      for (const [path, bytes] of kept) server.files.set(path, bytes);
    });

    for (const [what, code, change] of changes) {
      test(`with ${what} is refused`, async () => {
        change(server.files);
        const error = await page.evaluate(async () => {
          const { Tandem } = await import('/tandem/index.js');
          return Tandem.load('/atlas', { release: '/release.json' }).then(
            (model) => model.dispose(),
            ({ name, code, message }) => ({ name, code, message }),
          );
        });
        assert.deepEqual([error?.name, error?.code], ['TandemError', code], error?.message);
        if (code === 'bad_value') assert.match(error.message, /^release\.json: .*the module says/);
      });
    }
  });
}
