// A headless Chromium with WebGPU on the software adapter.
import { createRequire } from 'node:module';
import { dawnFeatures } from './dawn.mjs';

const require = createRequire(new URL('../../../web/package.json', import.meta.url));
const { chromium } = require('playwright-core');

export function launch() {
  return chromium.launch({
    executablePath: process.env.TANDEM_CHROMIUM ?? '/usr/bin/chromium',
    args: [
      '--no-sandbox',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--enable-unsafe-webgpu',
      '--use-webgpu-adapter=swiftshader',
      '--enable-features=Vulkan,WebGPU',
      `--enable-dawn-features=${dawnFeatures}`,
    ],
  });
}

/** A page whose errors fail the test that looks at `page.problems`. */
export async function openPage(context, url) {
  const page = await context.newPage();
  page.problems = [];
  page.setDefaultTimeout(120_000); // a busy machine may take so long
  page.on('pageerror', (error) => page.problems.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error') page.problems.push(message.text());
  });
  await page.goto(url);
  return page;
}
