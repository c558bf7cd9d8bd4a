// The page by clicks and keys, over an engine without a GPU.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { launch, openPage } from '../support/browser.mjs';
import { sha256 } from '../support/bytes.mjs';
import { serveFakeSite, site } from '../support/site.mjs';

const screenshots = process.env.TANDEM_SCREENSHOTS;
let server, browser, context, page;

before(async () => {
  server = await serveFakeSite();
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await server?.close();
});
beforeEach(async () => {
  context = await browser.newContext({
    viewport: { width: 1000, height: 900 },
  });
  page = await openPage(context, server.origin);
});
afterEach(async () => {
  await context.close();
  assert.deepEqual(page.problems, []);
});

const load = async () => {
  await page.click('#load');
  await page.waitForSelector('#send:enabled', { state: 'attached' });
};
const ask = async (text) => {
  await page.fill('#prompt', text);
  await page.press('#prompt', 'Enter');
};
const finished = () => page.waitForFunction(() => !document.querySelector('.writing'));
const shot = async (name) => {
  if (screenshots) await page.screenshot({ path: `${screenshots}/${name}.png` });
};

test('the plan is there before the model is loaded', async () => {
  await page.waitForSelector('#plan dd');
  assert.match(await page.textContent('#plan'), /Largest buffer2\.0 MB of 1\.1 GB/);
});

test('a chat answers, shows its figures and draws them', async () => {
  await load();
  assert.match(await page.textContent('#status'), /MTP engine on fake/);
  const words = Array.from({ length: 200 }, (_, i) => `w${i}`);
  await ask(words.join(' '));
  await finished();
  assert.match(await page.textContent('.turn.model'), /^w0 w1 .* w199200 tokens, seed \d+$/);
  assert.match(await page.textContent('#figures'), /Drafts accepted50 %/);
  assert.match(await page.getAttribute('#plot svg', 'aria-label'), /tokens per second/);
  await shot('chat');
  await page.click('#new-chat');
  await page.waitForFunction(() => document.querySelectorAll('.turn').length === 0);
});

test('Stop and Escape end an answer', async () => {
  await load();
  for (const end of [() => page.click('#stop'), () => page.keyboard.press('Escape')]) {
    await ask('huge');
    await page.waitForFunction(() => document.querySelector('.writing')?.textContent.length > 10);
    await end();
    await finished();
    assert.match(await page.locator('.turn.model').last().textContent(), /stopped; \d+ tokens/);
  }
});

test('a load that fails leaves the keyboard at Load, and can be begun again', async () => {
  server.faults.status = { '/tandem/engine/gemma4_mtp.js': 404 };
  await page.focus('#load');
  await page.keyboard.press('Enter');
  await page.waitForSelector('#problem:not([hidden])');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'load');
  page.problems.length = 0; // the browser's own word on HTTP 404
  delete server.faults.status;
  await load();
  await page.click('#model summary');
  await page.click('#unload');
  assert.ok(await page.isVisible('#load'));
});

test('the keyboard stays where Send was', async () => {
  const focused = () => page.evaluate(() => document.activeElement.id);
  await load();
  assert.equal(await focused(), 'prompt');
  await page.keyboard.type('huge');
  await page.keyboard.press('Tab');
  assert.equal(await focused(), 'send');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.querySelector('.writing')?.textContent.length > 10);
  assert.equal(await focused(), 'stop');
  await page.keyboard.press('Enter');
  await finished();
  assert.equal(await focused(), 'send');
});

test('a plain answer is asked for by the switch', async () => {
  await load();
  await page.check('input[name="mtp"][value="off"]');
  await ask('one two three');
  await finished();
  assert.match(await page.textContent('#figures'), /none drafted/);
});

test('without its assistant a model has no MTP to choose', async () => {
  await page.uncheck('#assistant');
  await load();
  assert.match(await page.textContent('#status'), /Plain engine/);
  assert.ok(await page.isDisabled('input[name="mtp"][value="on"]'));
});

test('a lost device is told, and the model can be loaded again', async () => {
  await load();
  await ask('one lose two');
  await page.waitForSelector('#problem:not([hidden])');
  assert.match(await page.textContent('#problem'), /the device is gone.*\(device_lost\)/);
  await load();
  await ask('one two');
  await finished();
  assert.match(await page.locator('.turn.model').textContent(), /^one two/);
});

test('the benchmark compares both ways and saves what it found', async () => {
  await load();
  await page.click('#tab-bench');
  await page.fill('#bench-prompt', 'a b c d e f');
  await page.click('#bench-run');
  await page.waitForSelector('#bench-save:enabled');
  assert.match(await page.textContent('#bench-result'), /MTP is [\d.]+ times as fast; the tokens are the same/);
  const [download] = await Promise.all([page.waitForEvent('download'), page.click('#bench-save')]);
  const report = JSON.parse(await readFile(await download.path(), 'utf8'));
  assert.deepEqual(
    report.runs.map((run) => run.mode),
    ['plain', 'mtp', 'mtp', 'plain', 'plain', 'mtp'],
  );
  assert.equal(report.prompt_sha256, sha256('a b c d e f'));
  assert.equal(new Set(report.runs.map((run) => run.ids_sha256)).size, 1);
});

test('kernels are charted in the profile build, which says what Chrome does to times', async () => {
  await page.click('#tab-kernels');
  assert.ok(await page.isDisabled('#kernels-run'));
  await page.check('#profile');
  await load();
  await page.click('#kernels-run');
  await page.waitForSelector('.bar');
  assert.match(await page.textContent('#kernels-chart'), /^linear0\.30 ms, \d+ calls, 50 %/);
  assert.match(await page.textContent('#kernels-note'), /100 µs/);
});

test('tabs are moved through by arrow keys', async () => {
  await page.focus('#tab-chat');
  await page.keyboard.press('ArrowLeft');
  assert.ok(await page.isVisible('#kernels'));
  assert.ok(await page.isHidden('#chat'));
  assert.equal(await page.evaluate(() => document.activeElement.id), 'tab-kernels');
});

test('a URL without an artifact is a problem with its name', async () => {
  await page.check('input[name="from"][value="url"]');
  await page.fill('#url', `${server.origin}/nothing`);
  await page.click('#load');
  await page.waitForSelector('#problem:not([hidden])');
  assert.match(await page.textContent('#problem'), /nothing\/manifest\.json does not exist/);
  page.problems.length = 0; // the browser's own word on HTTP 404
});

test('a picked folder loads as a URL does', async () => {
  await page.check('input[name="from"][value="folder"]');
  await page.setInputFiles('#folder', new URL('atlas/', site).pathname);
  await load();
  await ask('one two');
  await finished();
  assert.match(await page.textContent('.turn.model'), /^one two/);
});

test('once loaded the page needs no network', async () => {
  await page.waitForFunction(() => navigator.serviceWorker.controller);
  await load();
  await context.setOffline(true);
  await page.reload();
  await load();
  await ask('one two');
  await finished();
  assert.match(await page.textContent('.turn.model'), /^one two/);
  await context.setOffline(false);
});

test('on a phone nothing is wider than the screen', async () => {
  await page.setViewportSize({ width: 360, height: 740 });
  await load();
  await ask('what is the capital of France, and of the country that lies to the east of it?');
  await finished();
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(width <= 360, `the page is ${width} pixels wide`);
  for (let i = 0; i < 3; i++) {
    await ask(`${i} what is the capital of France, and of the country that lies to the east of it?`);
    await finished();
  }
  const below = await page.evaluate(() => {
    const log = document.querySelector('#log');
    return log.scrollHeight - log.scrollTop - log.clientHeight;
  });
  assert.ok(below < 2, `${below} pixels of the conversation are out of sight`);
  await shot('phone');
});
