// Refresh the live parts of a page while a phase is under way. Without this, reload the page.
"use strict";

const main = document.querySelector("main");
const address = new URL(location.href);
// The rest of this page stays in its language, whatever another tab chooses meanwhile.
address.searchParams.set("language", document.documentElement.lang);
// Nobody chooses a language by this.
const headers = { Accept: "text/html", "X-Requested-With": "renew.js" };

async function renew() {
  if (document.hidden) return;
  const response = await fetch(address, { headers });
  if (!response.ok) return;
  const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
  if (fresh.querySelector("main").dataset.state !== main.dataset.state) {
    // Not a reload: this page may be the response to a form, which would be sent again.
    location.replace(location.pathname + location.search);
    return;
  }
  for (const part of document.querySelectorAll("[data-live]")) {
    const next = fresh.getElementById(part.id);
    // A part that has the focus stays as it is.
    if (next && !part.contains(document.activeElement)) part.replaceWith(next);
  }
}

setInterval(() => renew().catch(() => {}), 1000 * Number(main.dataset.every));
