/** The page: navigation between screens, status messages and errors. */

import { listen } from "../phone/microphone.ts";
import { EarshotError } from "../protocol/errors.ts";
import { button, element, paragraph } from "./drawing.ts";
import { acceptedLink, keep, keepNothing, kept, tried } from "./kept.ts";
import { type Outcome, Participation } from "./participation.ts";
import { PhoneError, PhoneLine } from "./phone_line.ts";
import type { Summary } from "./results.ts";
import { drawn, NAVIGATION, type Page, type Screen } from "./screens.ts";
import { ownScript } from "./scripts.ts";
import { LANGUAGES, Texts } from "./texts.ts";
import { addressOf, agreeTo, newestVersion, ownVersion } from "./versions.ts";

/** Milliseconds after which a screen that is still being drawn shows a message. */
const PROMPT = 500;
/** Fewest phones of a phase when small groups are allowed: no sum takes fewer. */
const SMALLEST_GROUP = 3;
/** Kinds of lasting trouble, the most fundamental first; only the first is shown. */
const TROUBLES = ["browser", "screen", "visits"] as const;
const ENCODER = new URL("../contrast-3.tflite", import.meta.url).href;

function one<E extends HTMLElement>(selector: string): E {
  return document.querySelector<E>(selector)!;
}

/** State of the page, and its connection to the phone. */
class EarshotPage implements Page {
  texts: Texts;
  readonly line = new PhoneLine();
  readonly participation: Participation;
  fragment: string | null = null;
  naming: number | null = null;
  lastVisit: string;
  result: Summary | null = null;
  isAsking = false;
  #screen: Screen = "welcome";
  /** Whether the screen is not drawn yet. */
  #isNew = false;
  #drawings = 0;
  #works = 0;
  #isGone = false;
  /** Status message for the next screen. */
  #next = "";
  /** Settings with which the phone was opened; another tab may change them. */
  #accepted = "";
  readonly #troubles = new Map<(typeof TROUBLES)[number], string>();

  constructor(texts: Texts) {
    this.texts = texts;
    this.lastVisit = texts.say("visit.none");
    this.participation = new Participation(this.line, this.#visited.bind(this));
  }

  /** Open the phone if there is one, and the screen that the address names. */
  async begin(): Promise<void> {
    this.#frame();
    addEventListener("hashchange", () => void this.#route());
    addEventListener("unhandledrejection", ({ reason }) => this.#fail(reason));
    addEventListener("error", ({ error, message }) => this.#fail(error ?? new Error(message)));
    // Another tab may have accepted an invitation or erased the phone meanwhile.
    const look = (): void => {
      if (accepted() !== this.#accepted) location.reload();
    };
    addEventListener("storage", look);
    addEventListener("pageshow", look);
    this.#accepted = accepted();
    this.#trouble("browser", this.#unfit());
    if (acceptedLink()) this.#open();
    await this.#route();
    const newest = await newestVersion();
    if (newest && newest.version !== ownVersion()) this.#offer(newest.version, newest.digest);
  }

  go(screen: Screen, said = ""): void {
    this.#next = said;
    if (location.hash === `#${screen}`) void this.#show(screen);
    else location.hash = screen;
  }

  async again(said: string): Promise<void> {
    await this.#show(this.#screen, false);
    this.#say(said);
  }

  async doing(work: () => Promise<void>): Promise<void> {
    const working = this.texts.say("working");
    this.#works++;
    document.body.setAttribute("aria-busy", "true");
    this.#say(working);
    await work().catch((error) => this.#fail(error));
    if (one("#status").textContent === working) this.#say("");
    if (--this.#works === 0) document.body.removeAttribute("aria-busy");
  }

  async hear(): Promise<void> {
    this.#say(this.texts.say("listen.asking"));
    if (this.isAsking) return;
    this.isAsking = true;
    const heard = listen(new URL("worklet.js", import.meta.url));
    // A permission prompt may stay open for long: the page is not busy meanwhile.
    await heard.catch(() => {});
    this.isAsking = false;
    document.querySelector("#asking")?.remove();
    await this.doing(async () => {
      const sound = await heard;
      if (this.#isGone) return;
      this.naming = await this.line.ask("hear", sound);
      // A worker cannot request persistence. Not awaited, since Firefox asks its user.
      navigator.storage?.persist?.().catch(() => {});
      const done = this.texts.say("listen.done");
      if (this.#screen === "listen") await this.again(done);
      else this.#say(done);
    });
  }

  async join(fragment: string): Promise<void> {
    const unfit = this.#unfit();
    if (unfit !== null) return this.#say(unfit);
    keep({ link: fragment, enrolled: false });
    this.fragment = null;
    this.#open();
    await this.#look();
    this.go("listen", this.#troubles.size ? "" : this.texts.say("welcome.joined"));
  }

  async allowSmall(small: boolean): Promise<void> {
    keep({ small });
    this.#open();
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
    // Another visit would enrol a new phone.
    this.participation.end();
    this.#isGone = true;
    try {
      await this.line.ask("erase", acceptedLink()!);
    } catch (error) {
      // An unsupported browser has no phone to erase.
      if ((error as PhoneError).name !== "UnsupportedBrowserError") {
        this.#isGone = false;
        this.participation.start();
        throw error;
      }
    }
    keepNothing();
    await forgetFiles();
    location.hash = "gone";
    location.reload();
  }

  // ----------------------------------------------------------------------------------- screens

  #open(): void {
    const { link, enrolled, small } = kept();
    const policy = small ? { least_phones: SMALLEST_GROUP } : {};
    // A used code is not used again: a phone that lost its store must not silently return as a new
    // one with new budgets.
    const { invitation, ...operators } = tried(link!)!;
    const opening = enrolled ? operators : { ...operators, invitation };
    this.#accepted = accepted();
    this.line.open(opening, ENCODER, policy);
    this.participation.start();
    void keepFiles();
  }

  /** Show the screen that the address names, or the invitation that it carries. */
  async #route(): Promise<void> {
    const fragment = location.hash.slice(1);
    const isJoined = acceptedLink() !== null;
    const named = NAVIGATION.find((each) => each === fragment);
    if (fragment && !named && fragment !== "gone") {
      // Keeps the code out of the history and the address bar.
      history.replaceState(null, "", location.pathname);
      if (!isJoined) this.fragment = fragment;
      else this.#next = this.texts.say("welcome.already");
      return this.#show(isJoined ? "part" : "welcome");
    }
    if (fragment === "gone" && !isJoined) return this.#show("gone");
    return this.#show(isJoined ? (named ?? "listen") : "welcome");
  }

  /** Draw a screen, unless its reader goes on to another one meanwhile. */
  async #show(screen: Screen, isNew = true): Promise<void> {
    const drawing = ++this.#drawings;
    // Set before drawing, so that a redraw meanwhile draws this screen.
    this.#screen = screen;
    this.#isNew ||= isNew;
    const slow = isNew && setTimeout(() => this.#say(this.texts.say("working")), PROMPT);
    let wrong: string | null = null;
    const nodes = await drawn(screen, this).catch((error) => {
      wrong = this.#wrong(error);
      return [element("h1", { tabindex: -1 }, this.texts.say(`${screen}.title`))];
    });
    if (slow) clearTimeout(slow);
    if (drawing !== this.#drawings) return;
    const focus = document.activeElement?.getAttribute("data-do");
    const main = one("main");
    main.replaceChildren(...nodes);
    main.dataset["screen"] = screen;
    document.title = `${this.texts.say(`${screen}.title`)} · Earshot`;
    this.#navigation();
    if (this.#isNew) {
      this.#isNew = false;
      this.#say(this.#next);
      this.#next = "";
      one("h1").focus({ preventScroll: true });
      one("#page").scrollTo(0, 0);
    } else {
      // If the button that was pressed is gone, the title gets the focus.
      const same = focus && main.querySelector<HTMLElement>(`[data-do="${focus}"]`);
      (same || one("h1")).focus({ preventScroll: Boolean(same) });
    }
    if (wrong !== null) this.#trouble("screen", wrong);
    else void this.#look();
  }

  /** Check that the phone can be read, and look for the ending of a phase. */
  async #look(): Promise<void> {
    const drawing = this.#drawings;
    let wrong: string | null = null;
    try {
      if (acceptedLink() !== null) {
        const all = await this.line.ask("recordings");
        document.body.dataset["recordings"] = String(all.length);
        await this.#news();
      }
    } catch (error) {
      wrong = this.#wrong(error);
    }
    if (drawing === this.#drawings) this.#trouble("screen", wrong);
  }

  /** Draw the frame around the screens. */
  #frame(): void {
    document.documentElement.lang = this.texts.language;
    const skip = one(".skip");
    skip.textContent = this.texts.say("skip");
    // Its fragment would be taken for a screen's name.
    skip.addEventListener("click", (event) => {
      event.preventDefault();
      one("main").focus();
    });
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

  /** Offer another version of the page; its reader decides, not the host. */
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

  #visited({ event, error }: Outcome, again: Date | null): void {
    document.body.dataset["event"] = event;
    let wrong = error ? this.#wrong(error) : null;
    try {
      const isKnown = event !== "trouble" && event !== "stopped";
      if (isKnown && !kept().enrolled) keep({ enrolled: true });
    } catch (failed) {
      wrong = this.#wrong(failed);
    }
    this.#trouble("visits", wrong);
    const next = again ? this.texts.say("visit.next", { time: this.texts.time(again) }) : "";
    this.lastVisit = `${wrong ?? this.texts.say(`visit.${event}`)} ${next}`;
    const shown = document.querySelector("#visit");
    if (shown) shown.textContent = this.lastVisit;
    if (event === "phase over") void this.#look();
    // A screen that could not be drawn may work by now.
    else if (!error && this.#troubles.has("screen")) void this.#show(this.#screen, false);
  }

  /** Fetch the ending of a phase that the reader has not seen yet. */
  async #news(): Promise<void> {
    const before = this.result?.phase;
    this.result = await this.line.ask("ending");
    if (!this.result || this.result.phase === before) return;
    document.body.dataset["ended"] = this.result.phase;
    if (this.#screen === "part") await this.again(this.texts.say("result.here"));
    else this.#say(this.texts.say("result.news"));
  }

  // ----------------------------------------------------------------------------------- troubles

  /** Show trouble above every screen; null ends trouble of this kind. */
  #trouble(kind: (typeof TROUBLES)[number], wrong: string | null): void {
    if (wrong === null) this.#troubles.delete(kind);
    else this.#troubles.set(kind, wrong);
    const [said] = TROUBLES.flatMap((each) => this.#troubles.get(each) ?? []);
    const shown = one("#trouble");
    // Unchanged trouble is not announced again, and keeps the focus.
    if (shown.firstElementChild?.firstElementChild?.textContent === said) return;
    const again = button("again", this.texts.say("again"), () => this.doing(() => this.#retry()));
    shown.replaceChildren(...(said ? [element("div", { class: "alert" }, paragraph(said), again)] : []));
  }

  async #retry(): Promise<void> {
    this.#trouble("browser", this.#unfit());
    if (acceptedLink()) this.participation.start();
    await this.#show(this.#screen, false);
  }

  /** Return why this browser cannot hold a phone; null if no reason is known. */
  #unfit(): string | null {
    if (!isSecureContext) return this.texts.say("insecure");
    return agreeTo(ownVersion()) ? null : this.texts.find("error.StoreUnavailableError");
  }

  // -------------------------------------------------------------------------------------- words

  #say(text: string): void {
    one("#status").textContent = text;
  }

  #fail(error: unknown): void {
    this.#say(this.#wrong(error));
  }

  /** Describe an error in the page's language, in English with its details. */
  #wrong(error: unknown): string {
    const { name, message } = error instanceof Error ? error : new Error(String(error));
    const isOurs = error instanceof PhoneError || error instanceof EarshotError;
    const known = this.texts.find(`error.${isOurs ? name : "PageError"}`);
    const detail = this.texts.language === "en" || !known ? message : "";
    return [known, detail].filter((each) => each).join(" ");
  }
}

/** Return the settings that define the phone, for comparison. */
function accepted(): string {
  const { link, small } = kept();
  return JSON.stringify([link, small]);
}

/** Cache the page's files; otherwise it works only with a network. */
async function keepFiles(): Promise<void> {
  try {
    await navigator.serviceWorker.register(ownScript("service"), { scope: "./" });
  } catch {
    // Some browsers have no service workers, and some throw if the site's data is blocked.
  }
}

async function forgetFiles(): Promise<void> {
  try {
    const workers = await navigator.serviceWorker.getRegistrations();
    await Promise.all(workers.map((each) => each.unregister()));
    await Promise.all((await caches.keys()).map((each) => caches.delete(each)));
  } catch {
    // Those browsers have cached nothing.
  }
}

const language = kept().language ?? Texts.preferred(navigator.languages);
await new EarshotPage(await Texts.of(LANGUAGES.has(language) ? language : "en")).begin();
