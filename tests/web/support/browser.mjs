// A headless Chromium with WebGPU on the software adapter.
import { createRequire } from 'node:module';

const require = createRequire(new URL('../../../web/package.json', import.meta.url));
const { chromium } = require('playwright-core');

export const chromiumPath = process.env.TANDEM_CHROMIUM ?? '/usr/bin/chromium';

export function launch() {
  return chromium.launch({
    executablePath: chromiumPath,
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
    ],
  });
}

/** A page whose errors fail the test that looks at `page.problems`. */
export async function openPage(context, url) {
  const page = await context.newPage();
  page.problems = [];
  page.setDefaultTimeout(20_000);
  page.on('pageerror', (error) => page.problems.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error') page.problems.push(message.text());
  });
  await page.goto(url);
  return page;
}
