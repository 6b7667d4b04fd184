// What the theme and the gallery leave out for people who use a keyboard or a screen reader.

function name(selector, text) {
  document.querySelector(selector)?.setAttribute("aria-label", text);
}

document.addEventListener("DOMContentLoaded", () => {
  name(".sidebar-drawer", "Pages");
  name(".toc-drawer", "On this page");
  for (const caption of document.querySelectorAll(".caption[role=heading]")) {
    caption.setAttribute("aria-level", "2");
  }
  for (const wide of document.querySelectorAll("pre, .table-wrapper")) {
    wide.tabIndex = 0; // scrolled by keys
  }
  for (const link of document.querySelectorAll(".sphx-glr-thumbcontainer a")) {
    link.setAttribute("aria-label", link.textContent);
  }
  for (const parameters of document.querySelectorAll(".sig > dl")) {
    const list = document.createElement("ul"); // a signature of many lines defines no terms
    list.style = "list-style: none; margin: 0";
    for (const each of [...parameters.children]) {
      list.appendChild(document.createElement("li")).append(...each.childNodes);
    }
    parameters.replaceWith(list);
  }
  for (const corner of document.querySelectorAll("th")) {
    if (!corner.textContent.trim()) corner.replaceWith(document.createElement("td"));
  }
});
