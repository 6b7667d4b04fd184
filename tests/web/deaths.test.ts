import assert from "node:assert/strict";
import { test } from "node:test";

import { type Client, openPhone } from "../../client/web/phone/client.ts";
import { LabelHierarchy } from "../../client/web/protocol/environments.ts";
import { hex } from "../../client/web/protocol/wire.ts";
import type { Changes, Store } from "../../client/web/store/interface.ts";
import { MemoryStore } from "../../client/web/store/memory.ts";
import { points } from "./phones.ts";
import { Server } from "./server.ts";
import { of, vectors } from "./vectors.ts";

/**
 * A life that ends at one of its moments: before or after a commit, and before a request arrives or
 * after the server has done it. Nothing is thrown: the page is gone, and nothing of it goes on.
 */
class Life {
  /** Moments so far. */
  passed = 0;
  readonly #last: number;
  readonly death: Promise<"dead">;
  #die: (dead: "dead") => void = () => {};

  constructor(last: number) {
    this.#last = last;
    this.death = new Promise((resolve) => (this.#die = resolve));
  }

  moment(): Promise<void> {
    if (++this.passed < this.#last) return Promise.resolve();
    this.#die("dead");
    return new Promise(() => {});
  }
}

let made = 0;

/** The store that all lives share, as one of them has it; its lock dies with it. */
class MortalStore implements Store {
  readonly name = `a life ${++made}`;
  readonly #kept: Store;
  readonly #life: Life;

  constructor(kept: Store, life: Life) {
    this.#kept = kept;
    this.#life = life;
  }

  read(prefix: string) {
    return this.#kept.read(prefix);
  }

  async commit(changes: Changes, renew?: boolean): Promise<void> {
    await this.#life.moment();
    await this.#kept.commit(changes, renew);
    await this.#life.moment();
  }

  erase(): Promise<void> {
    return this.#kept.erase();
  }

  close(): void {}
}

interface Case {
  readonly tasks: readonly string[];
  readonly leaders: readonly string[];
  readonly helpers: readonly string[];
}

async function caseOf(why: string): Promise<Case> {
  const { phones } = await vectors("refused");
  return phones.find((each: any) => each.why === why);
}

/** Steps of the ledger, each with its unit. */
async function stepsOf(phone: Client): Promise<string[]> {
  return (await phone.ledger()).map(({ phase, step, unit }) => `${phase} ${step} ${unit}`);
}

/** A phone's whole phase, in lives of which the first ends at a moment; return how many passed. */
async function lived(given: Case, last: number): Promise<number> {
  const [kept, server] = [new MemoryStore(), new Server(...given.tasks.map(of))];
  server.lingers = true;
  const open = (life: Life): Client => {
    server.before = server.after = () => life.moment();
    return openPhone({
      server: "https://earshot.example.org",
      invitation: "code",
      leader: of(given.leaders[0]!),
      helper: of(given.helpers[0]!),
      encoder: points(),
      hierarchy: LabelHierarchy.flat(["a", "b"]),
      store: new MortalStore(kept, life),
      fetch: server.fetch,
      pause: async () => {},
      clock: () => 1.8e9,
    });
  };
  // What was heard is there already.
  const ear = open(new Life(Infinity));
  for (const choice of ["a", "b", "a"]) {
    const samples = Float32Array.from({ length: 8000 }, (_, at) => Math.sin(at) / 2);
    await ear.label(await ear.hear({ channels: [samples], rate: 8000 }), choice);
  }
  let life = new Life(last);
  let phone = open(life);
  let passed = 0;
  const answers = new Map<number, string>();
  for (let visits = 0; visits < 20; visits++) {
    const found = await Promise.race([phone.visit(), life.death]);
    passed = Math.max(passed, life.passed);
    // Whatever the server has by now stands in the ledger, as one step in both units each.
    const steps = await stepsOf(open(new Life(Infinity)));
    assert.equal(new Set(steps).size, steps.length, "a step is booked twice");
    assert.ok(2 * server.answers.length <= steps.length, "released, and not booked");
    server.answers.forEach((answer, at) => {
      assert.equal(answers.get(at) ?? answer, answer, "another answer to one task");
      answers.set(at, answer);
    });
    if (found === "dead") {
      life = new Life(Infinity);
    } else if (found.event === "waiting") {
      break;
    } else {
      assert.equal(found.event, "answered", found.detail);
    }
    phone = open(life);
  }
  assert.equal(server.answers.length, given.tasks.length);
  const steps = await stepsOf(phone);
  assert.equal(steps.length, 2 * given.tasks.length);
  const counted = (await phone.recordings()).filter((each) => each.counted).length;
  assert.equal(counted, steps[0]!.includes("histogram") ? 3 : 0);
  const enrolments = server.requests.filter((path) => path === "/v1/phones").length;
  assert.ok(enrolments >= 1 && enrolments <= 2 && server.key !== null);
  assert.equal(hex(of(server.answers[0]!)), server.answers[0]);
  return passed;
}

for (const why of [
  "nothing: the next part",
  "statistics: nothing, it takes part",
  "labelling: nothing, it takes part",
]) {
  test(`a page that is closed at any moment goes on where it was (${why})`, async () => {
    const given = await caseOf(why);
    const moments = await lived(given, Infinity);
    // A key, a name, what expired, and for each task: asked, answered, kept.
    assert.ok(moments >= 8 + 10 * given.tasks.length, `${moments}`);
    for (let last = 1; last <= moments; last++) await lived(given, last);
  });
}
