/** The page's words and summaries; a browser shows the rest. */

import assert from "node:assert/strict";
import { test } from "node:test";

import type { Ending, Visit } from "../../client/web/index.ts";
import { grouped, tried } from "../../client/web/page/kept.ts";
import { Participation } from "../../client/web/page/participation.ts";
import { PhoneError, type PhoneLine } from "../../client/web/page/phone_line.ts";
import { summaryOf } from "../../client/web/page/results.ts";
import { Texts } from "../../client/web/page/texts.ts";
import { bytesOf } from "./files.ts";

const PHASE = new Uint8Array(16).fill(7);
const HEX = "07".repeat(16);

async function texts(language: string): Promise<Texts> {
  const file = await bytesOf(`client/web/page/texts/${language}.json`);
  return new Texts(language, JSON.parse(new TextDecoder().decode(file)));
}

test("of contacts those are shown that stand clear of the noise", () => {
  const ending = {
    type: "statistics",
    phase: PHASE,
    label_names: ["bus", "café", "office"],
    labelled: [30.125, -3, 4],
    named: [10.125, 0, 8],
    labelled_p_values: [0.05, 0.9, 0.051],
    named_p_values: [0.8, 1, 0.051],
  } as unknown as Ending;
  assert.deepEqual(summaryOf(ending), {
    phase: HEX,
    type: "statistics",
    clear: [["bus", 40]],
    doubtful: 2,
    reason: null,
  });
  // A server that says nothing of chances has tested nothing.
  const nothing = { labelled_p_values: [], named_p_values: [] };
  const untested = summaryOf({ ...ending, ...nothing } as Ending);
  assert.deepEqual([untested.clear, untested.doubtful], [[], 3]);
  // What places name may stand clear where hardly anything was labelled.
  const named = summaryOf({ ...ending, named_p_values: [1, 1, 0.01] } as Ending);
  assert.deepEqual(named.clear, [
    ["bus", 40],
    ["office", 12],
  ]);
});

test("of places each name is shown once, and what may be noise is counted", () => {
  const ending = {
    type: "discovered",
    phase: PHASE,
    geometry: "spherical",
    centroids: { rows: 4, columns: 1, data: new Uint8Array(16) },
    labels: [0, 0, 1, 1],
    label_names: ["bus", "café"],
    name_p_values: [0.001, 0.002, 0.2, 0.06],
  } as unknown as Ending;
  const { clear, doubtful } = summaryOf(ending);
  assert.deepEqual([clear, doubtful], [[["bus", null]], 2]);
});

test("a phase that failed says why", () => {
  const { clear, reason } = summaryOf({ type: "failed", phase: PHASE, reason: "too few" });
  assert.deepEqual([clear, reason], [[], "too few"]);
});

test("words have plurals, values and names in each language", async () => {
  const [english, german] = [await texts("en"), await texts("de")];
  assert.equal(english.say("heard.caption", { count: 1 }), "One recording.");
  assert.equal(german.say("heard.caption", { count: 2 }), "2 Aufnahmen, die neuesten zuerst.");
  assert.equal(german.say("budget.spent", { spent: 1.5, limit: Infinity, delta: 1e-4 }),
    "ε 1,5 von ∞, bei δ 0,0001",
  );
  assert.equal(english.number(0.012345), "0.0123");
  assert.equal(german.name("kitchen"), "Küche");
  assert.equal(german.name("nobody's word"), "nobody's word");
  assert.equal(english.day(null), "day unknown");
  // A value is text, whatever it looks like.
  assert.equal(english.say("poll.done", { choice: "{count} $& <b>" }), "Saved: {count} $& <b>.");
});

test("the language is the first that a person reads and the page speaks", () => {
  assert.equal(Texts.preferred(["fr-FR", "de-CH", "en"]), "de");
  assert.equal(Texts.preferred(["fr"]), "en");
});

test("what is no invitation is none", () => {
  for (const wrong of ["", "earshot1.", "earshot2.AAAA", "<script>"]) {
    assert.equal(tried(wrong), null);
  }
  assert.equal(grouped(new Uint8Array(8)), "00000000 00000000");
});

if (typeof document !== "undefined") {
  test("a participation that has ended visits no more, until it begins again", async () => {
    const [visits, told]: [((visit: Visit) => void)[], string[]] = [[], []];
    const ask = (): Promise<Visit> => new Promise((resolve) => visits.push(resolve));
    const tell = ({ event }: { event: string }): void => void told.push(event);
    const participation = new Participation({ ask } as unknown as PhoneLine, tell);
    const turn = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 10));
    participation.start();
    participation.end();
    visits[0]!({ event: "phase over", detail: "", seconds: 0 });
    await turn();
    assert.deepEqual([visits.length, told], [1, []]);
    participation.start();
    visits[1]!({ event: "waiting", detail: "", seconds: 0 });
    while (visits.length < 3) await turn();
    assert.deepEqual(told, ["waiting"]);
    participation.end();
    visits[2]!({ event: "waiting", detail: "", seconds: 0 });
  });

  test("a visit that cannot write is tried again, and one of a lost store is not", async () => {
    const events: (string | undefined)[] = [];
    const failing = (name: string): Promise<void> =>
      new Promise((resolve) => {
        const ask = (): Promise<Visit> => Promise.reject(new PhoneError(name, "no"));
        const participation = new Participation({ ask } as unknown as PhoneLine, (outcome, again) => {
          participation.end();
          events.push(`${outcome.event} ${outcome.error?.name} ${again !== null}`);
          resolve();
        });
        participation.start();
      });
    for (const name of ["StoreUnavailableError", "PageError", "LostStoreError"]) await failing(name);
    assert.deepEqual(events, [
      "trouble StoreUnavailableError true",
      "trouble PageError true",
      "stopped LostStoreError false",
    ]);
  });
}
