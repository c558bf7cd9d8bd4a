// An artifact in the size of Gemma 4 E2B, with a vocabulary of 262144: its weights never lie in the engine's memory.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { test } from 'node:test';
import { launch, openPage } from '../support/browser.mjs';
import { site } from '../support/site.mjs';
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
  // The load ends with the last of the weights: compiling this size of kernels is not what is looked at.
  const { heapBytes, bytes } = await page.evaluate(async () => {
    const { default: create } = await import('/tandem/engine/webgpu_llama.js');
    const { Artifact } = await import('/tandem/artifact.js');
    const { tokenizerOf } = await import('/tandem/opening.js');
    const { openSource } = await import('/tandem/source.js');
    const artifact = new Artifact(openSource('/e2b'));
    const controller = new AbortController();
    const seen = { heapBytes: 0, bytes: 0 };
    const engine = await create({
      ...{ context: 128, inputBound: 16, signal: controller.signal },
      onProgress({ phase, done, total }) {
        if (phase !== 'weights') return;
        seen.bytes = done;
        seen.heapBytes = Math.max(seen.heapBytes, engine.census().heapBytes);
        if (done === total) controller.abort();
      },
    });
    const manifest = await artifact.manifest();
    const tokenizer = await artifact.verify(tokenizerOf(manifest));
    await engine.load(manifest, artifact, tokenizer).catch((error) => {
      if (error.name !== 'AbortError') throw error;
    });
    return seen;
  });
  assert.ok(bytes > 2e9, `${bytes} bytes of weights`);
  assert.ok(heapBytes < 64 << 20, `${heapBytes} bytes of wasm memory`);
});
