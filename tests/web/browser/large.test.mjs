// An artifact in the size of Gemma 4 E2B, with a vocabulary of 262144: its weights never lie in the engine's memory.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { test } from 'node:test';
import { launch, openPage } from '../support/browser.mjs';
import { site } from '../support/fake_site.mjs';
import { serve } from '../support/server.mjs';

test('the wasm memory stays below 64 MB while gigabytes go through', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'tandem-large-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const artifact = join(folder, 'e2b');
  execFileSync(process.env.TANDEM_PROGRAM, ['synthesize', '--geometry', 'e2b', '-o', artifact]);
  const server = await serve({ '/': site, '/e2b/': pathToFileURL(`${artifact}/`) });
  t.after(() => server.close());
  const browser = await launch();
  t.after(() => browser.close());

  const page = await openPage(await browser.newContext(), `${server.origin}/icon.svg`);
  page.setDefaultTimeout(900_000);
  const result = await page.evaluate(async () => {
    const { Tandem } = await import('/tandem/index.js');
    const model = await Tandem.load('/e2b', { cache: 'none', context: 128, inputBound: 16 });
    return { census: await model.census(), weightBytes: model.info.weightBytes };
  });
  assert.ok(result.weightBytes > 2e9, `${result.weightBytes} bytes of weights`);
  assert.ok(result.census.heapBytes < 64 << 20, `${result.census.heapBytes} bytes of wasm memory`);
});
