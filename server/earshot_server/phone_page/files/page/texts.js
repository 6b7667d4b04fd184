export const LANGUAGES = new Map([
    ["en", "English"],
    ["de", "Deutsch"],
]);
export class Texts {
    language;
    #words;
    #plurals;
    constructor(language, words) {
        this.language = language;
        this.#words = new Map(Object.entries(words));
        this.#plurals = new Intl.PluralRules(language);
    }
    static async of(language) {
        const response = await fetch(new URL(`texts/${language}.json`, import.meta.url));
        return new Texts(language, await response.json());
    }
    static preferred(languages) {
        const known = languages.map((each) => each.split("-")[0]);
        return known.find((each) => LANGUAGES.has(each)) ?? [...LANGUAGES.keys()][0];
    }
    say(key, values = {}) {
        const { count } = values;
        const form = typeof count === "number" ? this.#words.get(this.#plural(key, count)) : undefined;
        const text = form ?? this.#words.get(key) ?? key;
        return text.replace(/\{(\w+)\}/g, (_, name) => {
            const value = values[name];
            return typeof value === "number" ? this.number(value) : (value ?? "");
        });
    }
    find(key) {
        return this.#words.get(key) ?? null;
    }
    name(label) {
        return this.#words.get(`name.${label}`) ?? label;
    }
    number(value) {
        if (!Number.isFinite(value))
            return "∞";
        const digits = Math.abs(value) < 1 ? { maximumSignificantDigits: 3 } : { maximumFractionDigits: 2 };
        return new Intl.NumberFormat(this.language, digits).format(value);
    }
    day(day) {
        if (day === null)
            return this.say("day.unknown");
        const format = new Intl.DateTimeFormat(this.language, { dateStyle: "medium", timeZone: "UTC" });
        return format.format(new Date(`${day}T00:00:00Z`));
    }
    time(at) {
        return new Intl.DateTimeFormat(this.language, { timeStyle: "medium" }).format(at);
    }
    #plural(key, count) {
        return `${key}.${this.#plurals.select(count) === "one" ? "one" : "other"}`;
    }
}
