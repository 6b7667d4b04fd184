// Renews what changes while a phase is under way. Without it the page says the same after a reload.
"use strict";

const EVERY = 10000;

async function renew() {
  if (document.hidden) return;
  const response = await fetch(location.href);
  if (!response.ok) return;
  const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
  const main = fresh.querySelector("main");
  if (main.dataset.state !== document.querySelector("main").dataset.state) {
    location.reload();
    return;
  }
  for (const part of document.querySelectorAll("[data-live]")) {
    const next = fresh.getElementById(part.id);
    // Whoever is in the middle of it keeps it as it is.
    if (next && !part.contains(document.activeElement)) part.replaceWith(next);
  }
}

setInterval(() => renew().catch(() => {}), EVERY);
