// Renew what changes while a phase is under way. Without this, a reload shows the same.
"use strict";

const main = document.querySelector("main");

async function renew() {
  if (document.hidden) return;
  const response = await fetch(location.href, { headers: { Accept: "text/html" } });
  if (!response.ok) return;
  const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
  if (fresh.querySelector("main").dataset.state !== main.dataset.state) {
    // Not a reload, which would send a form again whose answer this page may be.
    location.replace(location.pathname + location.search);
    return;
  }
  for (const part of document.querySelectorAll("[data-live]")) {
    const next = fresh.getElementById(part.id);
    // A part that somebody is using stays as it is.
    if (next && !part.contains(document.activeElement)) part.replaceWith(next);
  }
}

setInterval(() => renew().catch(() => {}), 1000 * Number(main.dataset.every));
