// A static server for tests, which counts, and misbehaves where it is told to.
import { createServer } from 'node:http';
import { readFile } from 'node:fs/promises';
import { extname } from 'node:path';

const types = {
  '.css': 'text/css',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
  '.wasm': 'application/wasm',
  '.webmanifest': 'application/manifest+json',
};

/**
 * Serves the folders of `mounts` ({'/path/': URL of a folder}), and in front of them `files`, a Map of paths to
 * bytes, or to nothing where there is to be none. `faults` may be changed at any time:
 *   ranges: false       answers every request with the whole file
 *   cut: n              breaks a file's connection off after n bytes, `cuts` times
 *   status: {path: n}   answers with that status
 *   change(path, bytes, begin)   gives other bytes
 */
export async function serve(mounts = {}, files = new Map()) {
  const faults = {};
  const requests = [];
  let bytesSent = 0;

  async function find(path) {
    if (files.has(path)) return files.get(path);
    const mount = Object.keys(mounts)
      .filter((prefix) => path.startsWith(prefix))
      .sort((a, b) => b.length - a.length)[0];
    if (!mount || path.includes('..')) return undefined;
    return readFile(new URL(path.slice(mount.length), mounts[mount])).catch(() => undefined);
  }

  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url, 'http://localhost');
    const path = decodeURIComponent(pathname).replace(/\/$/, '/index.html');
    requests.push({ path, range: request.headers.range });
    const file = faults.status?.[path] ? undefined : await find(path);
    if (!file) {
      response.writeHead(faults.status?.[path] ?? 404).end();
      return;
    }
    const range = faults.ranges === false ? null : /^bytes=(\d+)-$/.exec(request.headers.range ?? '');
    const begin = range ? Number(range[1]) : 0;
    let body = file.subarray(begin);
    response.writeHead(range ? 206 : 200, {
      'Content-Type': types[extname(path)] ?? 'application/octet-stream',
      'Content-Length': body.length,
      'Access-Control-Allow-Origin': '*',
      'Cross-Origin-Opener-Policy': 'same-origin',
      'Cross-Origin-Embedder-Policy': 'require-corp',
      'Cross-Origin-Resource-Policy': 'cross-origin',
      ...(range && {
        'Content-Range': `bytes ${begin}-${file.length - 1}/${file.length}`,
      }),
      ...faults.headers,
    });
    body = faults.change?.(path, body, begin) ?? body;
    if (faults.cut !== undefined && body.length > faults.cut && faults.cuts-- > 0) {
      bytesSent += faults.cut;
      response.write(body.subarray(0, faults.cut), () => response.destroy());
      return;
    }
    bytesSent += body.length;
    response.end(body);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    origin: `http://localhost:${server.address().port}`,
    faults,
    files,
    requests,
    bytesSent: () => bytesSent,
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}
