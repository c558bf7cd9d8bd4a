// Registers the service worker and tells it what the page loaded before it was there.

export async function startOffline(): Promise<void> {
  if (!('serviceWorker' in navigator)) return;
  await navigator.serviceWorker.register('service_worker.js');
  const { active } = await navigator.serviceWorker.ready;
  const loaded = performance.getEntriesByType('resource').map((entry) => entry.name);
  active?.postMessage([location.href, ...loaded]);
}
