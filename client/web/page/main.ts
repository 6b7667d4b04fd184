/** The page: begins, goes from screen to screen, and says what happens. */

import { button, element, paragraph } from "./drawing.ts";
import { acceptedLink, keep, keepNothing, kept, tried } from "./kept.ts";
import { type Outcome, Participation } from "./participation.ts";
import { type PhoneError, PhoneLine } from "./phone_line.ts";
import type { Summary } from "./results.ts";
import { drawn, NAVIGATION, type Page, type Screen } from "./screens.ts";
import { ownScript } from "./scripts.ts";
import { LANGUAGES, Texts } from "./texts.ts";
import { addressOf, agreeTo, newestVersion, ownVersion } from "./versions.ts";

/** Beginning of an invitation, where other fragments name screens. */
const INVITATION = "earshot";
/** Phones of the smallest phase that its reader may agree to: fewer no sum takes. */
const SMALLEST_GROUP = 3;
const ENCODER = new URL("../contrast-2.tflite", import.meta.url).href;

function one<E extends HTMLElement>(selector: string): E {
  return document.querySelector<E>(selector)!;
}

/** Everything on the screen, and what it has of the phone. */
class EarshotPage implements Page {
  texts: Texts;
  readonly line = new PhoneLine();
  readonly participation: Participation;
  fragment: string | null = null;
  naming: number | null = null;
  lastVisit: string;
  result: Summary | null = null;
  #screen: Screen = "welcome";
  #work: Promise<void> = Promise.resolve();

  constructor(texts: Texts) {
    this.texts = texts;
    this.lastVisit = texts.say("visit.none");
    this.participation = new Participation(this.line, this.#visited.bind(this));
  }

  /** Open the phone if there is one, and the screen that the address names. */
  async begin(): Promise<void> {
    this.#frame();
    addEventListener("hashchange", () => void this.#route());
    const link = acceptedLink();
    if (link) await this.#open();
    await this.#route();
    const newest = await newestVersion();
    if (newest && newest.version !== ownVersion()) this.#offer(newest.version, newest.digest);
  }

  go(screen: Screen): void {
    if (location.hash === `#${screen}`) void this.#show(screen);
    else location.hash = screen;
  }

  async again(said: string): Promise<void> {
    await this.#show(this.#screen, false);
    this.#say(said);
  }

  doing(work: () => Promise<void>): Promise<void> {
    this.#work = this.#work.then(async () => {
      document.body.setAttribute("aria-busy", "true");
      this.#say(this.texts.say("working"));
      await work().catch((error: Error) => this.#fail(error));
      document.body.removeAttribute("aria-busy");
    });
    return this.#work;
  }

  async join(fragment: string): Promise<void> {
    keep({ link: fragment, enrolled: false });
    this.fragment = null;
    await this.#open();
    this.go("listen");
    this.#say(this.texts.say("welcome.joined"));
  }

  async allowSmall(small: boolean): Promise<void> {
    keep({ small });
    await this.#open();
    await this.again(this.texts.say(small ? "part.small.on" : "part.small.off"));
  }

  name(recording: number | null): void {
    this.naming = recording;
  }

  async told(): Promise<void> {
    await this.line.ask("told");
    this.result = null;
    await this.again(this.texts.say("result.noted"));
  }

  async forgotten(): Promise<void> {
    // A visit from now on would enrol a phone anew.
    this.participation.end();
    await this.line.ask("erase");
    keepNothing();
    const workers = (await navigator.serviceWorker?.getRegistrations()) ?? [];
    await Promise.all(workers.map((each) => each.unregister()));
    await Promise.all((await caches.keys()).map((each) => caches.delete(each)));
    location.hash = "gone";
    location.reload();
  }

  // ----------------------------------------------------------------------------------- screens

  async #open(): Promise<void> {
    const { link, enrolled, small } = kept();
    const read = tried(link!)!;
    const policy = small ? { least_phones: SMALLEST_GROUP } : {};
    try {
      // A code that has served is not used again: a phone that lost its store must not come back
      // as a new one, with new budgets, without its owner knowing.
      const { invitation, ...operators } = read;
      const opening = enrolled ? operators : { ...operators, invitation };
      await this.line.ask("open", opening, ENCODER, policy);
      await this.#news();
    } catch (error) {
      this.#fail(error as Error);
      return;
    }
    this.participation.start();
    // The page works without it, but not without a network.
    await navigator.serviceWorker
      ?.register(ownScript("service"), { scope: "./" })
      .catch(() => undefined);
  }

  /** Show the screen that the address names, or the invitation that it carries. */
  async #route(): Promise<void> {
    const fragment = location.hash.slice(1);
    const isJoined = acceptedLink() !== null;
    if (fragment.startsWith(INVITATION)) {
      // Not in the history, and not in what somebody copies from the address bar.
      history.replaceState(null, "", location.pathname);
      if (!isJoined) this.fragment = fragment;
      await this.#show(isJoined ? "part" : "welcome");
      if (isJoined) this.#say(this.texts.say("welcome.already"));
      return;
    }
    const named = [...NAVIGATION].find((each) => each === fragment) ?? "listen";
    if (fragment === "gone" && !isJoined) await this.#show("gone");
    else await this.#show(isJoined ? named : "welcome");
  }

  async #show(screen: Screen, isNew = true): Promise<void> {
    const nodes = await drawn(screen, this).catch((error: Error) => {
      this.#fail(error);
      return [element("h1", { tabindex: -1 }, this.texts.say(`${screen}.title`))];
    });
    const focus = document.activeElement?.getAttribute("data-do");
    this.#screen = screen;
    const main = one("main");
    main.replaceChildren(...nodes);
    main.dataset["screen"] = screen;
    document.title = `${this.texts.say(`${screen}.title`)} · Earshot`;
    this.#navigation();
    if (isNew) {
      this.#say("");
      one("h1").focus({ preventScroll: true });
      scrollTo(0, 0);
    } else {
      // What was pressed may be gone; then its screen's title is where its reader goes on.
      const same = focus && main.querySelector<HTMLElement>(`[data-do="${focus}"]`);
      (same || one("h1")).focus({ preventScroll: Boolean(same) });
    }
    await this.#count();
  }

  async #count(): Promise<void> {
    if (acceptedLink() === null) return;
    const all = await this.line.ask("recordings").catch(() => []);
    document.body.dataset["recordings"] = String(all.length);
  }

  /** Draw what is around the screens. */
  #frame(): void {
    document.documentElement.lang = this.texts.language;
    one(".skip").textContent = this.texts.say("skip");
    const choices = [...LANGUAGES].map(([code, name]) =>
      element("option", { value: code, lang: code, selected: code === this.texts.language }, name),
    );
    const select = element("select", { id: "language" }, ...choices);
    select.addEventListener("change", () => {
      keep({ language: select.value });
      location.reload();
    });
    const label = element("label", { for: "language" }, this.texts.say("language"));
    const version = this.texts.say("version", { version: ownVersion() });
    one("footer").replaceChildren(
      element("p", {}, label, " ", select),
      paragraph(`${this.texts.say("storage")} ${version}`, "soft"),
    );
  }

  #navigation(): void {
    const nav = one("nav");
    nav.hidden = acceptedLink() === null;
    nav.setAttribute("aria-label", this.texts.say("navigation"));
    const items = NAVIGATION.map((screen) => {
      const current = screen === this.#screen ? "page" : undefined;
      const link = element("a", { href: `#${screen}`, "aria-current": current });
      link.textContent = this.texts.say(`${screen}.nav`);
      return element("li", {}, link);
    });
    nav.replaceChildren(element("ul", {}, ...items));
  }

  /** Offer another version of the page; it is taken by its reader, not by the host. */
  #offer(version: string, digest: string): void {
    const take = button("update", this.texts.say("update.do"), () => {
      agreeTo(version);
      location.href = addressOf(version);
    });
    const text = element("p", {}, this.texts.say("update.lead", { version }));
    const shown = element("p", { class: "hex" }, digest);
    one("footer").prepend(
      element(
        "section",
        { class: "note", "aria-labelledby": "update" },
        element("h2", { id: "update" }, this.texts.say("update.title")),
        ...[text, shown, take],
      ),
    );
  }

  // ------------------------------------------------------------------------------------- visits

  async #visited(outcome: Outcome, again: Date | null): Promise<void> {
    document.body.dataset["event"] = outcome.event;
    if (outcome.event === "stopped") this.lastVisit = this.#wrong(outcome.error);
    else {
      if (!kept().enrolled && outcome.event !== "trouble") keep({ enrolled: true });
      const next = again ? this.texts.say("visit.next", { time: this.texts.time(again) }) : "";
      this.lastVisit = `${this.texts.say(`visit.${outcome.event}`)} ${next}`;
      if (outcome.event === "phase over") await this.#news();
    }
    const shown = document.querySelector("#visit");
    if (shown) shown.textContent = this.lastVisit;
  }

  /** Ask for the ending of a phase that its reader does not know yet. */
  async #news(): Promise<void> {
    this.result = await this.line.ask("ending");
    if (!this.result) return;
    if (this.#screen === "part") await this.again(this.texts.say("result.here"));
    else this.#say(this.texts.say("result.news"));
    document.body.dataset["ended"] = this.result.phase;
  }

  // -------------------------------------------------------------------------------------- words

  #say(text: string): void {
    one("#status").textContent = text;
  }

  #fail(error: Error): void {
    this.#say(this.#wrong(error as PhoneError));
  }

  /** Return what went wrong in the page's language, with the phone's own words for the details. */
  #wrong(error: PhoneError): string {
    const known = this.texts.find(`error.${error.name}`);
    const detail = this.texts.language === "en" || !known ? error.message : "";
    return [known, detail].filter((each) => each).join(" ");
  }
}

const language = kept().language ?? Texts.preferred(navigator.languages);
agreeTo(ownVersion());
await new EarshotPage(await Texts.of(LANGUAGES.has(language) ? language : "en")).begin();
