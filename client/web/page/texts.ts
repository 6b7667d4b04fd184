/** Texts of the page, in a data file for each language. */

/** Languages with a file in `texts/` and their own names; the first is the default. */
export const LANGUAGES: ReadonlyMap<string, string> = new Map([
  ["en", "English"],
  ["de", "Deutsch"],
]);

type Values = Readonly<Record<string, string | number>>;

/** Texts of one language, and its formats of numbers and days. */
export class Texts {
  readonly language: string;
  readonly #words: ReadonlyMap<string, string>;
  readonly #plurals: Intl.PluralRules;

  constructor(language: string, words: Readonly<Record<string, string>>) {
    this.language = language;
    this.#words = new Map(Object.entries(words));
    this.#plurals = new Intl.PluralRules(language);
  }

  /** Fetch the texts of a language. */
  static async of(language: string): Promise<Texts> {
    const response = await fetch(new URL(`texts/${language}.json`, import.meta.url));
    return new Texts(language, await response.json());
  }

  /** Return the first of a person's languages that the page has, or else the default. */
  static preferred(languages: readonly string[]): string {
    const known = languages.map((each) => each.split("-")[0]!);
    return known.find((each) => LANGUAGES.has(each)) ?? [...LANGUAGES.keys()][0]!;
  }

  /**
   * Return a text with `{name}` replaced by its value.
   *
   * With a value `count`, the text of `key.one` or `key.other` is used if there is one.
   */
  say(key: string, values: Values = {}): string {
    const { count } = values;
    const form = typeof count === "number" ? this.#words.get(this.#plural(key, count)) : undefined;
    const text = form ?? this.#words.get(key) ?? key;
    return text.replace(/\{(\w+)\}/g, (_, name: string) => {
      const value = values[name];
      return typeof value === "number" ? this.number(value) : (value ?? "");
    });
  }

  /** Return a text, or null if the language has none of this key. */
  find(key: string): string | null {
    return this.#words.get(key) ?? null;
  }

  /** Translate a choice or label, which phases state in English. */
  name(label: string): string {
    return this.#words.get(`name.${label}`) ?? label;
  }

  /** Format a number with at most two decimals, or three significant digits below one. */
  number(value: number): string {
    if (!Number.isFinite(value)) return "∞";
    const digits =
      Math.abs(value) < 1 ? { maximumSignificantDigits: 3 } : { maximumFractionDigits: 2 };
    return new Intl.NumberFormat(this.language, digits).format(value);
  }

  /** Format a day such as 2026-03-02. */
  day(day: string | null): string {
    if (day === null) return this.say("day.unknown");
    const format = new Intl.DateTimeFormat(this.language, { dateStyle: "medium", timeZone: "UTC" });
    return format.format(new Date(`${day}T00:00:00Z`));
  }

  /** Format a time of today, such as 14:05:09. */
  time(at: Date): string {
    return new Intl.DateTimeFormat(this.language, { timeStyle: "medium" }).format(at);
  }

  #plural(key: string, count: number): string {
    return `${key}.${this.#plurals.select(count) === "one" ? "one" : "other"}`;
  }
}
