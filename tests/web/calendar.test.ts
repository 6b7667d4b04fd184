import assert from "node:assert/strict";
import { test } from "node:test";

import {
  dayOf,
  daysBefore,
  LONGEST_OFF,
  type Look,
  lookedAt,
  type OwnLook,
} from "../../client/web/phone/calendar.ts";
import { expired } from "../../client/web/phone/expiry.ts";

const DAY = 86_400;
const NOW = 1.8e9;

/** A clock that anybody may set, the time that really passes, and what a store keeps of it. */
class World {
  clock = NOW;
  really = 0;
  /** The most that the clock has ever said. */
  latest = NOW;
  look: Look | null = null;

  pass(seconds: number): void {
    this.really += seconds;
    this.set(this.clock + seconds);
  }

  set(clock: number): void {
    this.clock = clock;
    this.latest = Math.max(this.latest, clock);
  }
}

/** A page, which counts the time that it runs and remembers what it has stored. */
class Page {
  readonly #world: World;
  readonly #began: number;
  #own: OwnLook | undefined;

  constructor(world: World) {
    this.#world = world;
    this.#began = world.really;
  }

  /** Look, as after something was released, and return what counts since the beginning. */
  look(isKept = true): number {
    const uptime = this.#world.really - this.#began;
    const found = lookedAt(this.#world.look, this.#world.clock, uptime, this.#own);
    if (isKept) {
      this.#world.look = found;
      this.#own = { counted: found.counted, uptime };
    }
    return Math.round(1000 * (found.counted - NOW)) / 1000;
  }
}

function opened(): [World, Page] {
  const world = new World();
  const page = new Page(world);
  assert.equal(page.look(), 0);
  return [world, page];
}

test("before anything was released the clock is believed", () => {
  assert.deepEqual(lookedAt(null, NOW, 5), { counted: NOW, clock: NOW });
  const [world, page] = opened();
  for (const clock of [NOW - DAY, NOW + 400 * DAY]) {
    [world.look, world.clock] = [null, clock];
    assert.equal(page.look(), clock - NOW);
  }
  // What the page saw before does not count for the phone that there is now.
  world.look = { counted: NOW, clock: NOW };
  assert.equal(page.look(), 0);
});

test("while a page runs, no more days pass than it has been running", () => {
  const [world, page] = opened();
  world.pass(3600);
  assert.equal(page.look(), 3600);
  world.set(NOW + 400 * DAY);
  world.pass(3600);
  assert.equal(page.look(), 3600 + 3603.6);
  world.set(NOW - DAY); // back frees nothing either
  world.pass(60);
  assert.equal(page.look(), 3600 + 3603.6);
  world.pass(60);
  assert.equal(page.look(), 3600 + 3603.6 + 60);
});

test("a clock that is right is believed, in pages that were closed for up to a week", () => {
  const [world] = opened();
  for (let at = 1; at <= 60; at++) {
    const page = new Page(world);
    assert.equal(page.look(false), world.really, "what is shown and not stored uses nothing up");
    assert.equal(page.look(), world.really);
    world.pass(60);
    assert.equal(page.look(), world.really);
    world.pass(LONGEST_OFF);
  }
});

test("after a new start a week counts at most", () => {
  const [world] = opened();
  world.pass(DAY);
  assert.equal(new Page(world).look(), DAY);
  world.set(NOW + 400 * DAY);
  assert.equal(new Page(world).look(), DAY + LONGEST_OFF);
  assert.equal(new Page(world).look(), DAY + LONGEST_OFF, "a clock that stays there counts once");
});

test("a clock put a week forward and back between two pages frees one week in all", () => {
  const [world, one] = opened();
  const other = new Page(world);
  for (let swings = 0; swings < 60; swings++) {
    world.set(NOW + LONGEST_OFF);
    other.look();
    world.set(NOW);
    one.look();
  }
  assert.equal(other.look(), LONGEST_OFF);
});

test("nor does a new page for each swing of the clock free more than its first", () => {
  for (const days of [7, 60, 400]) {
    const [world] = opened();
    for (let swings = 0; swings < 60; swings++) {
      world.set(NOW + (swings % 2 ? 0 : days * DAY));
      assert.equal(new Page(world).look(), LONGEST_OFF);
    }
  }
});

test("pages that look in turn at a clock put ever further forward free a week each", () => {
  const [world, one] = opened();
  const pages = [one, new Page(world), new Page(world)];
  for (let weeks = 1; weeks < 60; weeks++) {
    world.set(NOW + weeks * LONGEST_OFF);
    pages[weeks % 3]!.look();
  }
  assert.equal(one.look(), 2 * LONGEST_OFF);
});

test("however pages and clocks interleave, no more counts than the rule promises", () => {
  let seed = 49;
  const below = (most: number): number => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return (most * seed) / 2 ** 32;
  };
  let [most, freed] = [0, 0];
  for (let round = 0; round < 300; round++) {
    const [world, first] = opened();
    const pages = [first];
    const looked = new Set([0]);
    let [before, fresh] = [0, 0];
    for (let step = 0; step < 60; step++) {
      if (below(1) < 0.3) pages.push(new Page(world));
      if (below(1) < 0.5) world.pass(below(1) < 0.5 ? below(60) : below(10 * DAY));
      const days = [7, -7, 365, -365, 30 * below(1), -30 * below(1)][Math.floor(below(6))]!;
      if (below(1) < 0.6) world.set(below(1) < 0.2 ? NOW + world.really : world.clock + days * DAY);
      const at = Math.floor(below(pages.length));
      if (!looked.has(at)) fresh++;
      looked.add(at);
      const counted = pages[at]!.look();
      assert.ok(counted >= before, "days never run back");
      const rule = 1.001 * world.really + fresh * LONGEST_OFF;
      assert.ok(counted <= rule + 1e-3, `${counted} of ${rule}`);
      const reached = world.latest - NOW + 1.001 * world.really;
      assert.ok(counted <= reached + 1e-3, `${counted}, where the clock said ${reached} at most`);
      before = counted;
    }
    most = Math.max(most, fresh);
    freed = Math.max(freed, before - world.really);
  }
  assert.ok(most > 10 && freed > 3 * LONGEST_OFF, `${most} pages freed ${freed / DAY} days`);
});

test("days are those of UTC", () => {
  assert.deepEqual(
    [dayOf(0), dayOf(DAY - 0.001), dayOf(DAY)],
    ["1970-01-01", "1970-01-01", "1970-01-02"],
  );
  assert.equal(daysBefore("2028-03-01", 1), "2028-02-29");
  assert.equal(daysBefore("2027-01-15", 28), "2026-12-18");
});

test("recordings expire at an age, those without a day from a first day on", () => {
  const made = [
    [1, "2027-01-01"],
    [2, "2027-01-02"],
    [3, null],
    [4, "2030-01-01"],
  ] as const;
  assert.deepEqual(expired(made, null, 28, "2027-01-29"), { numbers: [1], since: "2027-01-29" });
  assert.deepEqual(expired(made, "2027-01-02", 28, "2027-01-29"), {
    numbers: [1],
    since: "2027-01-02",
  });
  assert.deepEqual(expired(made, "2027-01-01", 28, "2027-01-29"), {
    numbers: [1, 3, 4],
    since: null,
  });
  assert.deepEqual(expired(made.slice(0, 2), "2027-01-01", 28, "2027-01-28"), {
    numbers: [],
    since: null,
  });
});
