export function element(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [attribute, value] of Object.entries(attributes)) {
        if (value === false || value === undefined)
            continue;
        made.setAttribute(attribute, value === true ? "" : String(value));
    }
    made.append(...children.filter((each) => !!each || each === ""));
    return made;
}
export function paragraph(text, kind) {
    return element("p", { class: kind }, text);
}
export function button(does, text, act, kind) {
    const made = element("button", { type: "button", "data-do": does, class: kind }, text);
    let isActing = false;
    made.addEventListener("click", async () => {
        if (isActing)
            return;
        isActing = true;
        await act();
        isActing = false;
    });
    return made;
}
export function table(caption, heads, rows) {
    const head = heads.map((each) => element("th", { scope: "col", role: "columnheader" }, each));
    const body = rows.map((cells) => element("tr", { role: "row" }, ...cells.map((cell, at) => at === 0
        ? element("th", { scope: "row", role: "rowheader" }, cell)
        : element("td", { role: "cell", "data-label": heads[at] }, cell))));
    return element("table", { role: "table" }, element("caption", {}, caption), element("thead", { role: "rowgroup" }, element("tr", { role: "row" }, ...head)), element("tbody", { role: "rowgroup" }, ...body));
}
