// Registers the service worker and tells it what the page loaded before it was there.

export async function startOffline(): Promise<void> {
  if (!('serviceWorker' in navigator)) return;
  await navigator.serviceWorker.register('service_worker.js');
  const { active } = await navigator.serviceWorker.ready;
  const loaded = performance.getEntriesByType('resource').map((entry) => entry.name);
  // Browsers fetch the icon when they like, and do not list it.
  const icon = document.querySelector<HTMLLinkElement>('link[rel="icon"]')!.href;
  active?.postMessage([location.href, icon, ...loaded]);
}
