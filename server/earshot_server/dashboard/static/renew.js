// Renew what changes while a phase is under way. Without this, a reload shows the same.
"use strict";

const EVERY = 10000;

async function renew() {
  if (document.hidden) return;
  const response = await fetch(location.href, { headers: { Accept: "text/html" } });
  if (!response.ok) return;
  const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
  const main = fresh.querySelector("main");
  if (main.dataset.state !== document.querySelector("main").dataset.state) {
    location.reload();
    return;
  }
  for (const part of document.querySelectorAll("[data-live]")) {
    const next = fresh.getElementById(part.id);
    // A part that somebody is using stays as it is.
    if (next && !part.contains(document.activeElement)) part.replaceWith(next);
  }
}

setInterval(() => renew().catch(() => {}), EVERY);
