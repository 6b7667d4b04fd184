"use strict";
const ROOT = new URL("..", location.href);
async function keepAll() {
    const list = await fetch(new URL("files.json", ROOT));
    const files = await list.json();
    const cache = await caches.open(ROOT.href);
    await cache.addAll(files.map((path) => new URL(path, ROOT).href));
}
async function found(request) {
    const cache = await caches.open(ROOT.href);
    return (await cache.match(request, { ignoreSearch: true })) ?? fetch(request);
}
addEventListener("install", (event) => event.waitUntil(keepAll()));
addEventListener("fetch", (event) => {
    if (event.request.url.startsWith(ROOT.href))
        event.respondWith(found(event.request));
});
