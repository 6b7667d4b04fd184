import assert from "node:assert/strict";
import { test } from "node:test";

import { openPhone } from "../../client/web/phone/client.ts";
import type { Bytes } from "../../client/web/protocol/wire.ts";
import { MemoryStore } from "../../client/web/store/memory.ts";
import { points } from "./phones.ts";
import { Server } from "./server.ts";
import { of, vectors } from "./vectors.ts";

/** A phone that visits a server with this task, once; and what its ledger has afterwards. */
async function visited(phone: { leader: Bytes; helper: Bytes }, given: Bytes) {
  const server = new Server(given);
  const client = openPhone({
    ...{ server: "https://earshot.example.org", invitation: "code", ...phone },
    ...{ encoder: points(), store: new MemoryStore(), fetch: server.fetch, clock: () => 1.8e9 },
  });
  const visit = await client.visit();
  return { visit, entries: (await client.ledger()).length, answers: server.answers.length };
}

async function operators(): Promise<{ leader: Bytes; helper: Bytes; tasks: string[] }> {
  const { phones } = await vectors("refused");
  const accepted = phones.filter((each: any) => each.outcomes[0].booked);
  const [{ leaders, helpers }] = accepted;
  const tasks = accepted.map((each: any) => each.tasks[0]);
  return { leader: of(leaders[0]), helper: of(helpers[0]), tasks };
}

test("bytes that are no task are trouble, and nothing else", async () => {
  const { leader, helper } = await operators();
  const { messages } = await vectors("refused");
  const tasks = messages.filter((each: any) => each.of === "tasks");
  // Those of Bell et al.'s sum and of learning phases are refused before their fields are read.
  const outcomes = new Map<string, number>();
  for (const { why, messagepack } of tasks.filter((_: unknown, at: number) => at % 3 === 0)) {
    const { visit, entries } = await visited({ leader, helper }, of(messagepack));
    outcomes.set(visit.event, (outcomes.get(visit.event) ?? 0) + 1);
    assert.ok(["trouble", "refused"].includes(visit.event), `${why}: ${visit.event}`);
    assert.equal(entries, 0, why);
  }
  assert.ok(outcomes.get("trouble")! > 50, JSON.stringify([...outcomes]));
});

/** Whole numbers below a limit, the same in every run (an xorshift of 32 bits). */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

test("a task with another byte never breaks a phone, and is hardly ever answered", async () => {
  const { leader, helper, tasks } = await operators();
  const draw = numbers(40);
  let answered = 0;
  for (let at = 0; at < 300; at++) {
    const task = of(tasks[at % tasks.length]!);
    const place = draw(task.length);
    task[place] = task[place]! ^ (1 + draw(255));
    const { visit, entries, answers } = await visited({ leader, helper }, task);
    assert.ok(["trouble", "refused", "answered", "waiting", "phase over"].includes(visit.event));
    assert.equal(entries, 2 * answers);
    answered += answers;
  }
  // The offer has a digest of the whole task; but for the index, and longer forms of one value.
  assert.ok(answered < 15, `${answered}`);
});
