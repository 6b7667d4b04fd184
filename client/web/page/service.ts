/**
 * Service worker: the files of one version of the page, kept so that it opens without a network.
 *
 * Addresses contain the version, so cached files never change; another version has other addresses,
 * and the page's reader agrees to it.
 */

// Names of ServiceWorkerGlobalScope, which TypeScript's types for pages lack.
interface Extendable extends Event {
  waitUntil(work: Promise<unknown>): void;
}
interface Fetching extends Extendable {
  readonly request: Request;
  respondWith(response: Promise<Response>): void;
}
declare function addEventListener(name: "install", react: (event: Extendable) => void): void;
declare function addEventListener(name: "fetch", react: (event: Fetching) => void): void;

const ROOT = new URL("..", location.href);

async function keepAll(): Promise<void> {
  const files: readonly string[] = await (await loaded("files.json")).json();
  const all = await Promise.all(files.map(loaded));
  const cache = await caches.open(ROOT.href);
  await Promise.all(files.map((path, at) => cache.put(new URL(path, ROOT), all[at]!)));
}

async function loaded(path: string): Promise<Response> {
  const response = await fetch(new URL(path, ROOT));
  if (!response.ok) throw new Error(`${path}: its host answered ${response.status}`);
  // Some hosts redirect, and browsers refuse to open a page from a redirected response.
  return response.redirected ? new Response(response.body, response) : response;
}

async function found(request: Request): Promise<Response> {
  const address = request.url.replace(/\/(?=$|[?#])/, "/index.html");
  const options = { cacheName: ROOT.href, ignoreSearch: true };
  // A browser that cannot read its cache may still reach the host.
  const kept = await caches.match(address, options).catch(() => undefined);
  return kept ?? fetch(request);
}

addEventListener("install", (event) => event.waitUntil(keepAll()));
addEventListener("fetch", (event) => {
  if (event.request.url.startsWith(ROOT.href)) event.respondWith(found(event.request));
});
