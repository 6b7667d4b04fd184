/** Phones that are told something, and what they say: cases of docs/vectors/phones.py, played. */

import type { Encoder } from "../../client/web/phone/encoder.ts";
import { Memory, type Settings } from "../../client/web/phone/memory.ts";
import { answered } from "../../client/web/phone/phone.ts";
import type { Policy } from "../../client/web/phone/policy.ts";
import { RefusedError, RemoteError } from "../../client/web/protocol/errors.ts";
import { decodeTask } from "../../client/web/protocol/messages.ts";
import { limitsOf } from "../../client/web/protocol/phases/acceptance.ts";
import type { Expense } from "../../client/web/protocol/privacy/accounting.ts";
import { Ledger } from "../../client/web/protocol/privacy/ledger.ts";
import type { Bytes } from "../../client/web/protocol/wire.ts";
import { MemoryStore } from "../../client/web/store/memory.ts";
import { of } from "./vectors.ts";

/** An encoder whose embedding is the beginning of the sound, and its projection that of those. */
export function points(name = "contrast-3", dimensions = 128): Encoder {
  return {
    name,
    dimensions,
    rate: 8000,
    embed: (second) => unit(second.slice(0, dimensions)),
    project: (embedding, wanted) => unit(embedding.slice(0, wanted)),
  };
}

function unit(row: Float32Array): Float32Array {
  const norm = Math.hypot(...row) || 1;
  return row.map((value) => value / norm);
}

export function settings(changes: Partial<Settings> = {}): Settings {
  const policy: Policy = {
    limits: limitsOf(),
    operators: { leaders: [], helpers: [] },
    tellRefusals: true,
  };
  return {
    encoder: points(),
    policy,
    hierarchy: null,
    keepDays: null,
    voter: null,
    clock: () => 1.8e9,
    ...changes,
  };
}

/** Entries as a phone exports them, as they are kept. */
async function booked(entries: readonly any[]): Promise<readonly Bytes[]> {
  const ledger = await Ledger.open();
  const written: Bytes[] = [];
  for (let at = 0; at < entries.length; ) {
    const { phase, day } = entries[at];
    const spent: Expense[] = [];
    for (; entries[at]?.phase === phase && entries[at].day === day; at++) {
      const { event, step, unit: counted, epsilon, delta, mechanism } = entries[at];
      spent.push({ release: { step, unit: counted, epsilon, delta, mechanism }, event });
    }
    written.push(...(await ledger.append(of(phase), spent, day)));
  }
  return written;
}

/** A phone of a case before its first task: its store, and what it opens that with. */
export async function prepared(
  given: any,
  clock: () => number = () => given.now,
): Promise<{ store: MemoryStore; about: Settings }> {
  const about = settings({
    policy: {
      limits: limitsOf(given.limits),
      operators: { leaders: given.leaders.map(of), helpers: given.helpers.map(of) },
      tellRefusals: true,
    },
    clock,
  });
  const store = new MemoryStore();
  const before = await Memory.open(store, about);
  await before.expire();
  before.book(await booked(given.ledger));
  for (let at = 0; at < given.recordings; at++) {
    const embedding = Float32Array.from({ length: 128 }, (_, place) => +(place === at % 128));
    before.keep(embedding, "2027-01-01");
  }
  await before.commit();
  return { store, about };
}

/**
 * What our phone makes of each task of a case: what it books, or why it does not. `later` is what
 * its clock reads by then; by default what it read when its ledger was written.
 */
export async function played(given: any, later = given.now): Promise<readonly unknown[]> {
  let { now } = given;
  const { store, about } = await prepared(given, () => now);
  now = later;
  const outcomes: unknown[] = [];
  for (const task of given.tasks) {
    const memory = await Memory.open(store, about);
    const { entries } = memory.state;
    try {
      await answered(memory, decodeTask(of(task)));
      await memory.commit();
      const all = (await (await Memory.open(store, about)).ledger()).export();
      const kept = all.slice(entries).map((entry) => {
        const { step, unit: counted, epsilon, delta, mechanism, event } = entry;
        return { step, unit: counted, epsilon, delta, mechanism, event };
      });
      outcomes.push({ booked: kept });
    } catch (error) {
      if (error instanceof RefusedError) outcomes.push({ rule: error.rule });
      else if (error instanceof RemoteError) outcomes.push({ error: error.name });
      else throw error;
    }
  }
  return outcomes;
}
