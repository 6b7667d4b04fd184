/**
 * Service worker: the files of one version of the page, kept so that it opens without a network.
 *
 * Addresses name the version, so what is kept never changes; another version is another address,
 * which the page's reader agrees to.
 */

// Names of ServiceWorkerGlobalScope, which the library of types for pages has not.
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
  const list = await fetch(new URL("files.json", ROOT));
  const files: readonly string[] = await list.json();
  const cache = await caches.open(ROOT.href);
  await cache.addAll(files.map((path) => new URL(path, ROOT).href));
}

async function found(request: Request): Promise<Response> {
  const cache = await caches.open(ROOT.href);
  return (await cache.match(request, { ignoreSearch: true })) ?? fetch(request);
}

addEventListener("install", (event) => event.waitUntil(keepAll()));
addEventListener("fetch", (event) => {
  if (event.request.url.startsWith(ROOT.href)) event.respondWith(found(event.request));
});
