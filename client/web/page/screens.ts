/** Screens of the page: each asks the phone for what it shows, and draws it. */

import type { PhoneLink } from "../index.ts";
import { button, element, paragraph, table } from "./drawing.ts";
import { acceptedLink, grouped, kept, tried } from "./kept.ts";
import type { Participation } from "./participation.ts";
import type { PhoneLine } from "./phone_line.ts";
import type { Summary } from "./results.ts";
import type { Texts } from "./texts.ts";

/** What screens need of the page around them. */
export interface Page {
  readonly texts: Texts;
  readonly line: PhoneLine;
  readonly participation: Participation;
  /** Fragment of an invitation that was not accepted yet; null where there is none. */
  readonly fragment: string | null;
  /** Recording that is being named; null where there is none. */
  readonly naming: number | null;
  /** Message about the last visit and the time of the next. */
  readonly lastVisit: string;
  readonly result: Summary | null;

  /** Whether the page waits for the microphone, which the user may have to allow. */
  readonly isAsking: boolean;

  /** Go to a screen. */
  go(screen: Screen): void;
  /** Draw the present screen again, with a status message. */
  again(said: string): Promise<void>;
  /** Run work, and show its error if it fails. */
  doing(work: () => Promise<void>): Promise<void>;
  /** Listen for a second; the page stays usable meanwhile. */
  hear(): Promise<void>;
  /** Accept an invitation. */
  join(fragment: string): Promise<void>;
  /** Accept or refuse small groups. */
  allowSmall(small: boolean): Promise<void>;
  /** Set the recording that is being named; null for none. */
  name(recording: number | null): void;
  /** Forget the page and the phone. */
  forgotten(): Promise<void>;
  /** Note that the result was read. */
  told(): Promise<void>;
}

type Drawn = readonly (Node | null)[];

const SCREENS = {
  welcome,
  listen,
  heard,
  left,
  budget,
  part,
  forget,
  gone,
} satisfies Record<string, (page: Page) => Drawn | Promise<Drawn>>;

/** Name of a screen, which is the fragment of its address. */
export type Screen = keyof typeof SCREENS;

/** Screens that the page's navigation leads to. */
export const NAVIGATION: readonly Screen[] = ["listen", "heard", "left", "budget", "part", "forget"];

/** Draw a screen. */
export async function drawn(screen: Screen, page: Page): Promise<readonly Node[]> {
  const title = element("h1", { tabindex: -1 }, page.texts.say(`${screen}.title`));
  const parts = await SCREENS[screen](page);
  return [title, ...parts.filter((each) => each !== null)];
}

// -------------------------------------------------------------------------------------- welcome

function welcome(page: Page): Drawn {
  const { texts, fragment } = page;
  const link = fragment === null ? null : tried(fragment);
  const lead = paragraph(texts.say("welcome.lead"), "lead");
  if (link === null) return [lead, ...invited(page, fragment !== null)];
  return [
    lead,
    element("h2", {}, texts.say("welcome.invitation")),
    paragraph(texts.say("welcome.trust")),
    whom(texts, link),
    paragraph(texts.say("welcome.host"), "soft"),
    button("join", texts.say("welcome.join"), () => page.doing(() => page.join(fragment!)), "main"),
  ];
}

/** Ask for an invitation, with a message if the given one is broken. */
function invited(page: Page, isBroken: boolean): Drawn {
  const { texts } = page;
  const link = element("input", {
    id: "link",
    name: "link",
    autocomplete: "off",
    spellcheck: "false",
    "aria-describedby": "link-hint",
  });
  const form = element(
    "form",
    { novalidate: true },
    element("label", { for: "link" }, texts.say("welcome.link")),
    element("p", { class: "hint", id: "link-hint" }, texts.say("welcome.link.hint")),
    link,
    element("button", { class: "main", "data-do": "use" }, texts.say("welcome.use")),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const { hash } = URL.canParse(link.value.trim()) ? new URL(link.value.trim()) : { hash: "" };
    if (tried(hash.slice(1))) location.hash = hash;
    else void page.doing(() => page.again(texts.say("welcome.broken")));
  });
  return [isBroken ? paragraph(texts.say("welcome.broken"), "alert") : null, form];
}

/** Return who is trusted: the server, and the keys of both operators. */
function whom(texts: Texts, link: PhoneLink): HTMLElement {
  const rows: readonly (readonly [string, string, string])[] = [
    ["whom.server", new URL(link.server).host, ""],
    ["whom.leader", grouped(link.leader), "hex"],
    ["whom.helper", grouped(link.helper), "hex"],
  ];
  const terms = rows.map(([key, value, kind]) =>
    element(
      "div",
      {},
      element("dt", {}, texts.say(key)),
      element("dd", { class: kind || undefined }, value),
    ),
  );
  return element("dl", { class: "whom" }, ...terms);
}

// --------------------------------------------------------------------------------------- listen

async function listen(page: Page): Promise<Drawn> {
  const { texts, naming, isAsking } = page;
  return [
    paragraph(texts.say("listen.lead"), "lead"),
    button("listen", texts.say("listen.do"), () => page.hear(), "main large"),
    isAsking ? element("p", { id: "asking", class: "note" }, texts.say("listen.asking")) : null,
    naming === null ? null : await poll(page, naming),
  ];
}

/** Ask where a recording was made. */
async function poll(page: Page, recording: number): Promise<HTMLElement | null> {
  const { texts, line } = page;
  const found = (await line.ask("recordings")).find((each) => each.number === recording);
  if (!found) return null;
  const groups = (await line.ask("poll")).map(([name, choices]) =>
    element(
      "optgroup",
      { label: texts.name(name) },
      ...choices.map((choice) =>
        element("option", { value: choice, selected: choice === found.choice }, texts.name(choice)),
      ),
    ),
  );
  const none = element("option", { value: "" }, texts.say("poll.choose"));
  const select = element("select", { id: "choice", name: "choice" }, none, ...groups);
  const label = async (): Promise<void> => {
    if (!select.value) return page.again(texts.say("poll.first"));
    await line.ask("label", recording, select.value);
    page.name(null);
    await page.again(texts.say("poll.done", { choice: texts.name(select.value) }));
  };
  const drop = async (): Promise<void> => {
    await line.ask("forget", recording);
    page.name(null);
    await page.again(texts.say("heard.forgotten"));
  };
  return element(
    "section",
    { class: "card", "aria-labelledby": "poll" },
    element("h2", { id: "poll" }, texts.say("poll.title")),
    paragraph(
      found.place === null
        ? texts.say("poll.unknown")
        : texts.say("poll.place", { place: texts.name(found.place) }),
    ),
    element("label", { for: "choice" }, texts.say("poll.choice")),
    select,
    element(
      "p",
      { class: "buttons" },
      button("label", texts.say("poll.do"), () => page.doing(label), "main"),
      button("drop", texts.say("poll.forget"), () => page.doing(drop)),
    ),
  );
}

// ---------------------------------------------------------------------------------------- heard

async function heard(page: Page): Promise<Drawn> {
  const { texts, line } = page;
  const all = [...(await line.ask("recordings"))].reverse();
  const lead = paragraph(texts.say("heard.lead"), "lead");
  if (!all.length) return [lead, paragraph(texts.say("heard.none"), "empty")];
  const forgotten = (recording?: number) => async (): Promise<void> => {
    await line.ask("forget", recording);
    if (recording === undefined || recording === page.naming) page.name(null);
    await page.again(texts.say("heard.forgotten"));
  };
  const name = (recording: number) => (): void => {
    page.name(recording);
    page.go("listen");
  };
  const rows = all.map(({ number, day, place, choice, counted }) => [
    texts.say("heard.number", { number: String(number), day: texts.day(day) }),
    place === null ? texts.say("heard.unnamed") : texts.name(place),
    choice === null ? "–" : texts.name(choice),
    texts.say(counted ? "yes" : "no"),
    element(
      "span",
      { class: "buttons" },
      button(`name-${number}`, texts.say("heard.name", { number: String(number) }), name(number)),
      button(`forget-${number}`, texts.say("heard.forget", { number: String(number) }), () =>
        page.doing(forgotten(number)),
      ),
    ),
  ]);
  const heads = ["heard.day", "heard.place", "heard.answer", "heard.counted", "heard.do"];
  return [
    lead,
    table(
      texts.say("heard.caption", { count: all.length }),
      heads.map((key) => texts.say(key)),
      rows,
    ),
    button("forget-all", texts.say("heard.all"), () => page.doing(forgotten())),
  ];
}

// ----------------------------------------------------------------------------------------- left

async function left(page: Page): Promise<Drawn> {
  const { texts, line } = page;
  const refusal = await line.ask("refusal");
  const refused = refusal && [
    element("h2", {}, texts.say("left.refused")),
    paragraph(texts.say("left.refused.lead")),
    // Without the name of the rule, which is for programs.
    element("p", { class: "note", lang: "en" }, refusal.replace(/^[a-z_]+: /, "")),
  ];
  const steps = new Map<string, (string | number | null)[]>();
  for (const entry of await line.ask("ledger")) {
    const { day, phase, step, unit, ...cost } = entry as Record<string, string | number | null>;
    const key = `${phase} ${step}`;
    const row = steps.get(key) ?? [day!, String(phase).slice(0, 8), step!, null, null];
    const [epsilon, delta] = [Number(cost.epsilon ?? Infinity), Number(cost.delta)];
    row[unit === "recording" ? 3 : 4] = texts.say("left.cost", { epsilon, delta });
    steps.set(key, row);
  }
  const rows = [...steps.values()].map(([day, phase, step, recording, whole]) => [
    texts.say("left.what", { step: String(step), phase: String(phase) }),
    texts.day(day === null ? null : String(day)),
    String(recording ?? "–"),
    String(whole ?? "–"),
  ]);
  const heads = ["left.step", "left.day", "left.recording", "left.phone"];
  const link = acceptedLink();
  return [
    paragraph(texts.say("left.lead"), "lead"),
    rows.length
      ? table(
          texts.say("left.caption", { count: rows.length }),
          heads.map((key) => texts.say(key)),
          rows,
        )
      : paragraph(texts.say("left.none"), "empty"),
    ...(refused || []),
    element("h2", {}, texts.say("left.whom")),
    paragraph(texts.say("left.whom.lead")),
    link && whom(texts, link),
  ];
}

// --------------------------------------------------------------------------------------- budget

async function budget(page: Page): Promise<Drawn> {
  const { texts, line } = page;
  const standing = await line.ask("standing");
  const rows = standing.map(({ span, unit, epsilon, largestEpsilon, delta }, at) => {
    const isLimited = Number.isFinite(largestEpsilon);
    return element(
      "div",
      { class: "card" },
      element("h2", { id: `budget-${at}` }, texts.say(`budget.${span}.${unit}`)),
      isLimited
        ? element("meter", {
            min: 0,
            max: largestEpsilon,
            value: Math.min(epsilon, largestEpsilon),
            "aria-labelledby": `budget-${at}`,
          })
        : null,
      paragraph(texts.say("budget.spent", { spent: epsilon, limit: largestEpsilon, delta })),
    );
  });
  return [
    paragraph(texts.say("budget.lead"), "lead"),
    element("div", { class: "cards" }, ...rows),
    paragraph(texts.say("budget.new"), "soft"),
  ];
}

// ----------------------------------------------------------------------------------------- part

async function part(page: Page): Promise<Drawn> {
  const { texts, participation, result } = page;
  const { isSitting } = participation;
  const sit = async (): Promise<void> => {
    participation.sit(!isSitting);
    await page.again(texts.say(isSitting ? "part.ended" : "part.begun"));
  };
  return [
    paragraph(texts.say("part.lead"), "lead"),
    element("p", { id: "visit", class: "note" }, page.lastVisit),
    result && outcome(page, result),
    element("h2", {}, texts.say("part.sitting")),
    paragraph(texts.say("part.sitting.lead")),
    button(
      "part",
      texts.say(isSitting ? "part.end" : "part.do"),
      () => page.doing(sit),
      isSitting ? undefined : "main large",
    ),
    ...small(page),
    element("h2", {}, texts.say("part.closed")),
    paragraph(texts.say("part.closed.lead")),
  ];
}

/** Ask whether small groups are accepted. */
function small(page: Page): Drawn {
  const { texts } = page;
  const box = element("input", {
    type: "checkbox",
    id: "small",
    "data-do": "small",
    checked: kept().small,
    "aria-describedby": "small-hint",
  });
  box.addEventListener("change", async () => {
    await page.doing(() => page.allowSmall(box.checked));
    box.checked = kept().small ?? false;
  });
  const label = element("label", { for: "small" }, texts.say("part.small"));
  const hint = element("p", { id: "small-hint", class: "soft" }, texts.say("part.small.lead"));
  return [element("p", { class: "choice" }, box, " ", label), hint];
}

/** Show how a phase ended. */
function outcome(page: Page, { type, clear, doubtful, reason }: Summary): HTMLElement {
  const { texts } = page;
  const names = clear.map(([name, count]) =>
    element("li", {}, count === null ? texts.name(name) : `${texts.name(name)}: ${count}`),
  );
  return element(
    "section",
    { class: "card", "aria-labelledby": "result" },
    element("h2", { id: "result" }, texts.say(`result.${type}`)),
    reason === null
      ? paragraph(texts.say(names.length ? "result.clear" : "result.nothing"))
      : element("p", { lang: "en" }, reason),
    names.length ? element("ul", {}, ...names) : null,
    doubtful ? paragraph(texts.say("result.doubtful", { count: doubtful }), "soft") : null,
    button("told", texts.say("result.read"), () => page.doing(page.told.bind(page))),
  );
}

// --------------------------------------------------------------------------------------- forget

function forget(page: Page): Drawn {
  const { texts, line, participation } = page;
  const save = async (): Promise<void> => {
    const all = JSON.stringify(await line.ask("export"), null, 1);
    const address = URL.createObjectURL(new Blob([all], { type: "application/json" }));
    const saved = element("a", { href: address, download: "earshot-phone.json" });
    saved.click();
    URL.revokeObjectURL(address);
    await page.again(texts.say("forget.saved"));
  };
  const leave = async (): Promise<void> => {
    participation.end();
    try {
      await line.ask("leave");
    } catch (error) {
      // A phone that was never enrolled has nothing to leave.
      if (!(error instanceof Error && error.name === "NotEnrolledError")) {
        participation.start();
        throw error;
      }
    }
    await page.forgotten();
  };
  const sure = element(
    "section",
    { class: "alert", id: "sure", hidden: true, tabindex: -1, "aria-labelledby": "sure-title" },
    element("h2", { id: "sure-title" }, texts.say("forget.sure")),
    paragraph(texts.say("forget.sure.lead")),
    element(
      "p",
      { class: "buttons" },
      button("erase", texts.say("forget.do"), () => page.doing(leave), "danger"),
      button("erase-only", texts.say("forget.anyway"), () => page.doing(page.forgotten.bind(page))),
    ),
    paragraph(texts.say("forget.anyway.lead"), "soft"),
  );
  const ask = button("forget", texts.say("forget.ask"), () => {
    sure.hidden = false;
    sure.focus();
  });
  return [
    paragraph(texts.say("forget.lead"), "lead"),
    element("h2", {}, texts.say("forget.export")),
    paragraph(texts.say("forget.export.lead")),
    button("export", texts.say("forget.save"), () => page.doing(save)),
    element("h2", {}, texts.say("forget.everything")),
    paragraph(texts.say("forget.everything.lead")),
    ask,
    sure,
  ];
}

function gone(page: Page): Drawn {
  return [paragraph(page.texts.say("gone.lead"), "lead")];
}
