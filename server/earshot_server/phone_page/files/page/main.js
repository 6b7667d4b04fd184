import { button, element, paragraph } from "./drawing.js";
import { acceptedLink, keep, keepNothing, kept, tried } from "./kept.js";
import { Participation } from "./participation.js";
import { PhoneLine } from "./phone_line.js";
import { drawn, NAVIGATION } from "./screens.js";
import { ownScript } from "./scripts.js";
import { LANGUAGES, Texts } from "./texts.js";
import { addressOf, agreeTo, newestVersion, ownVersion } from "./versions.js";
const INVITATION = "earshot";
const SMALLEST_GROUP = 3;
const ENCODER = new URL("../contrast-2.tflite", import.meta.url).href;
function one(selector) {
    return document.querySelector(selector);
}
class EarshotPage {
    texts;
    line = new PhoneLine();
    participation;
    fragment = null;
    naming = null;
    lastVisit;
    result = null;
    #screen = "welcome";
    #work = Promise.resolve();
    constructor(texts) {
        this.texts = texts;
        this.lastVisit = texts.say("visit.none");
        this.participation = new Participation(this.line, this.#visited.bind(this));
    }
    async begin() {
        this.#frame();
        addEventListener("hashchange", () => void this.#route());
        const link = acceptedLink();
        if (link)
            await this.#open();
        await this.#route();
        const newest = await newestVersion();
        if (newest && newest.version !== ownVersion())
            this.#offer(newest.version, newest.digest);
    }
    go(screen) {
        if (location.hash === `#${screen}`)
            void this.#show(screen);
        else
            location.hash = screen;
    }
    async again(said) {
        await this.#show(this.#screen, false);
        this.#say(said);
    }
    doing(work) {
        this.#work = this.#work.then(async () => {
            document.body.setAttribute("aria-busy", "true");
            this.#say(this.texts.say("working"));
            await work().catch((error) => this.#fail(error));
            document.body.removeAttribute("aria-busy");
        });
        return this.#work;
    }
    async join(fragment) {
        keep({ link: fragment, enrolled: false });
        this.fragment = null;
        await this.#open();
        this.go("listen");
        this.#say(this.texts.say("welcome.joined"));
    }
    async allowSmall(small) {
        keep({ small });
        await this.#open();
        await this.again(this.texts.say(small ? "part.small.on" : "part.small.off"));
    }
    name(recording) {
        this.naming = recording;
    }
    async told() {
        await this.line.ask("told");
        this.result = null;
        await this.again(this.texts.say("result.noted"));
    }
    async forgotten() {
        await this.line.ask("erase");
        keepNothing();
        const workers = (await navigator.serviceWorker?.getRegistrations()) ?? [];
        await Promise.all(workers.map((each) => each.unregister()));
        await Promise.all((await caches.keys()).map((each) => caches.delete(each)));
        location.hash = "gone";
        location.reload();
    }
    async #open() {
        const { link, enrolled, small } = kept();
        const read = tried(link);
        const policy = small ? { least_phones: SMALLEST_GROUP } : {};
        try {
            const { invitation, ...operators } = read;
            const opening = enrolled ? operators : { ...operators, invitation };
            await this.line.ask("open", opening, ENCODER, policy);
            await this.#news();
        }
        catch (error) {
            this.#fail(error);
            return;
        }
        this.participation.start();
        await navigator.serviceWorker
            ?.register(ownScript("service"), { scope: "./" })
            .catch(() => undefined);
    }
    async #route() {
        const fragment = location.hash.slice(1);
        const isJoined = acceptedLink() !== null;
        if (fragment.startsWith(INVITATION)) {
            history.replaceState(null, "", location.pathname);
            if (!isJoined)
                this.fragment = fragment;
            await this.#show(isJoined ? "part" : "welcome");
            if (isJoined)
                this.#say(this.texts.say("welcome.already"));
            return;
        }
        const named = [...NAVIGATION].find((each) => each === fragment) ?? "listen";
        if (fragment === "gone" && !isJoined)
            await this.#show("gone");
        else
            await this.#show(isJoined ? named : "welcome");
    }
    async #show(screen, isNew = true) {
        const nodes = await drawn(screen, this).catch((error) => {
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
        }
        else {
            const same = focus && main.querySelector(`[data-do="${focus}"]`);
            (same || one("h1")).focus({ preventScroll: Boolean(same) });
        }
        await this.#count();
    }
    async #count() {
        if (acceptedLink() === null)
            return;
        const all = await this.line.ask("recordings").catch(() => []);
        document.body.dataset["recordings"] = String(all.length);
    }
    #frame() {
        document.documentElement.lang = this.texts.language;
        one(".skip").textContent = this.texts.say("skip");
        const choices = [...LANGUAGES].map(([code, name]) => element("option", { value: code, lang: code, selected: code === this.texts.language }, name));
        const select = element("select", { id: "language" }, ...choices);
        select.addEventListener("change", () => {
            keep({ language: select.value });
            location.reload();
        });
        const label = element("label", { for: "language" }, this.texts.say("language"));
        const version = this.texts.say("version", { version: ownVersion() });
        one("footer").replaceChildren(element("p", {}, label, " ", select), paragraph(`${this.texts.say("storage")} ${version}`, "soft"));
    }
    #navigation() {
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
    #offer(version, digest) {
        const take = button("update", this.texts.say("update.do"), () => {
            agreeTo(version);
            location.href = addressOf(version);
        });
        const text = element("p", {}, this.texts.say("update.lead", { version }));
        const shown = element("p", { class: "hex" }, digest);
        one("footer").prepend(element("section", { class: "note", "aria-labelledby": "update" }, element("h2", { id: "update" }, this.texts.say("update.title")), ...[text, shown, take]));
    }
    async #visited(outcome, again) {
        document.body.dataset["event"] = outcome.event;
        if (outcome.event === "stopped")
            this.lastVisit = this.#wrong(outcome.error);
        else {
            if (!kept().enrolled && outcome.event !== "trouble")
                keep({ enrolled: true });
            const next = again ? this.texts.say("visit.next", { time: this.texts.time(again) }) : "";
            this.lastVisit = `${this.texts.say(`visit.${outcome.event}`)} ${next}`;
            if (outcome.event === "phase over")
                await this.#news();
        }
        const shown = document.querySelector("#visit");
        if (shown)
            shown.textContent = this.lastVisit;
    }
    async #news() {
        this.result = await this.line.ask("ending");
        if (!this.result)
            return;
        if (this.#screen === "part")
            await this.again(this.texts.say("result.here"));
        else
            this.#say(this.texts.say("result.news"));
        document.body.dataset["ended"] = this.result.phase;
    }
    #say(text) {
        one("#status").textContent = text;
    }
    #fail(error) {
        this.#say(this.#wrong(error));
    }
    #wrong(error) {
        const known = this.texts.find(`error.${error.name}`);
        const detail = this.texts.language === "en" || !known ? error.message : "";
        return [known, detail].filter((each) => each).join(" ");
    }
}
const language = kept().language ?? Texts.preferred(navigator.languages);
agreeTo(ownVersion());
await new EarshotPage(await Texts.of(LANGUAGES.has(language) ? language : "en")).begin();
