// Keeps the page, the package and the engine for when there is no network. Weights are not its
// concern: the package keeps those, verified, in the origin's private file system.
const name = 'tandem-page';

// An artifact's manifest is kept from other origins, too: with it and the kept weights a model loads offline.
function keeps(request) {
  const url = new URL(request.url);
  if (request.method !== 'GET' || request.headers.has('Range')) return false;
  if (!url.protocol.startsWith('http') || url.pathname.endsWith('.safetensors')) return false;
  return url.origin === location.origin || url.pathname.endsWith('/manifest.json');
}

async function fetchAndKeep(request) {
  const cache = await caches.open(name);
  try {
    const response = await fetch(request);
    if (response.status === 200) await cache.put(request, response.clone());
    return response;
  } catch (error) {
    const kept = await cache.match(request, { ignoreVary: true });
    if (kept) return kept;
    throw error;
  }
}

self.addEventListener('install', () => self.skipWaiting());
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()));
self.addEventListener('fetch', (event) => {
  if (keeps(event.request)) event.respondWith(fetchAndKeep(event.request));
});
self.addEventListener('message', (event) => {
  const requests = event.data.map((url) => new Request(url)).filter(keeps);
  event.waitUntil(Promise.allSettled(requests.map(fetchAndKeep)));
});
