/** Elements of the page, built without markup, so that untrusted text stays text. */

type Child = Node | string | null | undefined | false;
type Attributes = Readonly<Record<string, string | boolean | number | undefined>>;

/** Return an element; an attribute that is false or undefined is left out. */
export function element<N extends keyof HTMLElementTagNameMap>(
  name: N,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[N] {
  const made = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) {
    if (value === false || value === undefined) continue;
    made.setAttribute(attribute, value === true ? "" : String(value));
  }
  made.append(...children.filter((each): each is Node | string => !!each || each === ""));
  return made;
}

/** Return a paragraph. */
export function paragraph(text: string, kind?: string): HTMLElement {
  return element("p", { class: kind }, text);
}

/**
 * Return a button that calls `act`; `does` is its name for tests and other automation.
 *
 * Clicks are ignored while `act` runs.
 */
export function button(
  does: string,
  text: string,
  act: () => Promise<void> | void,
  kind?: string,
): HTMLElement {
  const made = element("button", { type: "button", "data-do": does, class: kind }, text);
  let isActing = false;
  made.addEventListener("click", async () => {
    if (isActing) return;
    isActing = true;
    try {
      await act();
    } finally {
      isActing = false;
    }
  });
  return made;
}

/** Return a table with a caption; cells of the first column head their rows. */
export function table(
  caption: string,
  heads: readonly string[],
  rows: readonly (readonly Child[])[],
): HTMLElement {
  const head = heads.map((each) => element("th", { scope: "col", role: "columnheader" }, each));
  // Narrow screens stack the cells, which removes the roles of tables, so they are stated.
  const body = rows.map((cells) =>
    element(
      "tr",
      { role: "row" },
      ...cells.map((cell, at) =>
        at === 0
          ? element("th", { scope: "row", role: "rowheader" }, cell)
          : element("td", { role: "cell", "data-label": heads[at] }, cell),
      ),
    ),
  );
  return element(
    "table",
    { role: "table" },
    element("caption", {}, caption),
    element("thead", { role: "rowgroup" }, element("tr", { role: "row" }, ...head)),
    element("tbody", { role: "rowgroup" }, ...body),
  );
}
