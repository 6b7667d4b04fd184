import assert from "node:assert/strict";
import { test } from "node:test";

import { shippedEncoder } from "../../client/web/phone/encoder.ts";
import { UnusableRecordingError } from "../../client/web/phone/features.ts";
import { UnknownLabelError } from "../../client/web/phone/labels.ts";
import { type Client, NotEnrolledError, openPhone } from "../../client/web/phone/client.ts";
import { ownLooks } from "../../client/web/phone/calendar.ts";
import { Memory } from "../../client/web/phone/memory.ts";
import type { Visit } from "../../client/web/phone/visits.ts";
import { LabelHierarchy } from "../../client/web/protocol/environments.ts";
import {
  InvalidInputError,
  InvalidParametersError,
  UnsupportedBrowserError,
  WrongStateError,
} from "../../client/web/protocol/errors.ts";
import { encode } from "../../client/web/protocol/fields.ts";
import { type Ending, task } from "../../client/web/protocol/messages.ts";
import { type Bytes, hex, pack, unpack, type Wire } from "../../client/web/protocol/wire.ts";
import { type Changes, LostLedgerError, LostStoreError } from "../../client/web/store/interface.ts";
import { BusyError } from "../../client/web/store/locks.ts";
import { MemoryStore } from "../../client/web/store/memory.ts";
import { SealedRows } from "../../client/web/store/sealed_rows.ts";
import { InvitationRefusedError, UnavailableError } from "../../client/web/transport/http.ts";
import { bytesOf } from "./files.ts";
import { played, points, settings } from "./phones.ts";
import { problem, Server } from "./server.ts";
import { of, vectors } from "./vectors.ts";

const NOW = 1.8e9;
const DAY = 86_400;
const PHASE = new Uint8Array(16).fill(3);

/** The tasks of a case of refused.json, and the operators of all of them. */
async function tasksOf(why: string): Promise<{ tasks: Bytes[]; leader: Bytes; helper: Bytes }> {
  const { phones } = await vectors("refused");
  const found = phones.find((each: any) => each.why === why);
  return { tasks: found.tasks.map(of), leader: of(found.leaders[0]), helper: of(found.helpers[0]) };
}

interface Opened {
  readonly phone: Client;
  readonly server: Server;
  readonly store: MemoryStore;
}

/** A phone with two labels, `a` and `b`, whose encoder takes sound for what it says. */
async function opened(tasks: readonly Bytes[] = [], changes: object = {}): Promise<Opened> {
  const { leader, helper } = await tasksOf("offer: there is none");
  const [server, store] = [new Server(...tasks), new MemoryStore()];
  const phone = openPhone({
    server: "https://earshot.example.org",
    invitation: "code",
    encoder: points(),
    hierarchy: LabelHierarchy.flat(["a", "b"]),
    leader,
    helper,
    store,
    fetch: server.fetch,
    pause: async () => {},
    clock: () => NOW,
    ...changes,
  });
  return { phone, server, store };
}

/** A second in which the encoder hears this point. */
function sound(...point: readonly number[]) {
  const samples = new Float32Array(8000).map((_, at) => (at % 2 ? 0.1 : -0.1));
  samples.set(point.map((value) => value / 10));
  // Without an offset, which would be taken away, and never silent.
  for (let at = 0; at < point.length; at++) samples[4000 + at] = -samples[at]!;
  return { channels: [samples], rate: 8000 };
}

function floats(...values: readonly number[]): Bytes {
  return new Uint8Array(Float32Array.from(values).buffer);
}

function discovered(changes: object = {}): Bytes {
  return encode(task, {
    type: "discovered",
    phase: PHASE,
    geometry: "spherical",
    centroids: { rows: 3, columns: 2, data: floats(1, 0, 0, 1, -1, 0) },
    labels: [0, 1, 0],
    choices: ["", "", ""],
    label_names: ["a", "b"],
    name_p_values: [0.01, 0.05, 0.06],
    lengths: [9, 8, 1],
    cells: { rows: 1, columns: 2, data: new Uint8Array(8) },
    moved: [true],
    cell_lengths: [7],
    cell_prototypes: [-1],
    radius: 0.2,
    refused: 0.5,
    encoder: "contrast-3",
    privacy: [],
    ...changes,
  } as Ending);
}

/** Another tab with the same phone. */
async function tab({ server, store }: Opened): Promise<Client> {
  return (await opened([], { store, fetch: server.fetch })).phone;
}

/** Let a server fall silent at a path; `answer` ends that, for whoever has asked. */
function silent(server: Server, at: string): { asked: Promise<void>; answer: () => void } {
  let answer = (): void => {};
  const answered = new Promise<void>((resolve) => (answer = resolve));
  const asked = new Promise<void>((resolve) => {
    server.before = (path) => {
      if (path !== at) return;
      resolve();
      return answered;
    };
  });
  return { asked, answer };
}

async function all(phone: Client): Promise<Visit[]> {
  const visits: Visit[] = [];
  do visits.push(await phone.visit());
  while (visits.at(-1)!.seconds === 0);
  return visits;
}

test("a phone hears, labels, forgets, and lets recordings expire", async () => {
  let now = NOW;
  const { phone, store } = await opened([], { clock: () => now });
  assert.equal(await phone.hear(sound(1, 0)), 1);
  assert.equal(await phone.hear(sound(0, 1)), 2);
  now += 10 * DAY;
  assert.equal(await phone.hear(sound(1, 1)), 3);
  await phone.label(2, "a");
  await phone.label(2, "b");
  await assert.rejects(phone.label(2, "c"), UnknownLabelError);
  await assert.rejects(phone.label(4, "a"), InvalidInputError);
  const short = { channels: [new Float32Array(9)], rate: 8000 };
  await assert.rejects(phone.hear(short), UnusableRecordingError);
  const [one, two, three] = await phone.recordings();
  const untold = { choice: null, counted: false, place: null };
  assert.deepEqual(one, { number: 1, day: "2027-01-15", ...untold });
  assert.deepEqual([two!.choice, three!.day], ["b", "2027-01-25"]);
  await phone.forget(1);
  await assert.rejects(phone.forget(1), InvalidInputError);
  now += 17 * DAY;
  await phone.label(3, "a");
  assert.equal((await phone.recordings()).length, 2);
  now += DAY;
  assert.equal(await phone.hear(sound(1, 0)), 4); // numbers are not used again
  const left = await phone.recordings();
  assert.deepEqual(
    left.map((each) => each.number),
    [3, 4],
  );
  await phone.forget();
  assert.deepEqual(await phone.recordings(), []);
  assert.equal((await store.read("recording/")).size, 0);
});

test("a phone hears by the encoder that all phones share", async () => {
  const file = await bytesOf("protocol/earshot_protocol/data/contrast-3.tflite");
  const { phone, store } = await opened([], { encoder: await shippedEncoder(file) });
  const samples = Float32Array.from({ length: 48_000 }, (_, at) => Math.sin(at * at) / 3);
  assert.equal(await phone.hear({ channels: [samples, samples], rate: 48_000 }), 1);
  const { embedding } = ((await phone.export()) as any).recordings[0];
  assert.equal(embedding.length, 128);
  assert.ok(Math.abs(Math.hypot(...embedding) - 1) < 1e-6);
  // Of the sound nothing is kept.
  const size = [...(await store.read("")).values()].reduce((sum, row) => sum + row.length, 0);
  assert.ok(size < 2000, `${size}`);
});

test("a clock that was wrong keeps no recording for ever", async () => {
  let now = NOW + 1000 * DAY;
  const { phone } = await opened([], { clock: () => now });
  await phone.hear(sound(1));
  now = NOW;
  await phone.hear(sound(1));
  now += 29 * DAY;
  await phone.hear(sound(1));
  const left = await phone.recordings();
  assert.deepEqual(
    left.map((each) => each.number),
    [3],
  );
});

test("a scene has the name of the nearest prototype, if it is near and clear", async () => {
  const { phone, server } = await opened([discovered()]);
  await assert.rejects(phone.scene(sound(1, 0)), WrongStateError);
  const over = await phone.visit();
  assert.equal(over.event, "phase over");
  assert.equal(over.detail, "discovered; this phone had no part in it");
  assert.equal(await phone.scene(sound(1, 0.3)), "a");
  assert.equal(await phone.scene(sound(-0.1, 1)), "b");
  assert.equal(await phone.scene(sound(1, 0.9)), null); // too far
  assert.equal(await phone.scene(sound(-1, 0)), null); // may be noise
  for (const heard of [sound(1, 0.3), sound(-0.1, 1), sound(1, 0.9), sound(-1, 0)]) {
    await phone.hear(heard);
  }
  const places = (await phone.recordings()).map((each) => each.place);
  assert.deepEqual(places, ["a", "b", null, null]);
  await phone.forget();
  assert.equal(await phone.ending(), null); // it is older than this phone
  server.tasks[0] = discovered({ phase: PHASE.map((each) => each + 1), label_names: ["b", "a"] });
  await phone.visit();
  assert.equal((await phone.ending())!.type, "discovered");
  assert.equal(await phone.scene(sound(1, 0.3)), "b");
  await phone.told();
  assert.equal(await phone.ending(), null);
  assert.deepEqual(server.known, [hex(PHASE)]);
});

test("samples that were labelled name sound before the result's places", async () => {
  const labelled = (changes: object = {}): Bytes =>
    encode(task, {
      type: "labelled",
      phase: PHASE.map(() => 50),
      geometry: "spherical",
      centroids: { rows: 3, columns: 2, data: floats(-1, 0, 0, 1, 0.8, 0.6) },
      labels: [1, -1, 0],
      label_names: ["a", "b"],
      label_votes: [],
      agreement: [],
      threshold: 1,
      name_p_values: [0.01, 0.01, 0.5],
      encoder: "contrast-3",
      privacy: [],
      ...changes,
    } as Ending);
  const { phone, server } = await opened([discovered()]);
  await phone.visit();
  server.tasks[0] = labelled();
  await phone.visit();
  assert.equal(await phone.scene(sound(-1, 0)), "b"); // which had no clear name
  assert.equal(await phone.scene(sound(0, 1)), "b"); // a sample without an answer hides nothing
  assert.equal(await phone.scene(sound(0.81, 0.59)), "a"); // nor does one that may be noise
  server.tasks[0] = labelled({
    phase: PHASE.map(() => 51),
    ...{ centroids: { rows: 1, columns: 1, data: floats(1) }, labels: [0], name_p_values: [0] },
  });
  await phone.visit();
  assert.equal(await phone.scene(sound(-1, 0)), null); // the two do not compare
  // Of a newer result, the samples of an older one are no part.
  server.tasks[0] = labelled({ phase: PHASE.map(() => 52) });
  await phone.visit();
  server.tasks[0] = discovered({ phase: PHASE.map(() => 53) });
  await phone.visit();
  assert.equal(await phone.scene(sound(-1, 0)), null);
});

test("results of other encoders and results that make no sense name nothing", async () => {
  const { phone, server } = await opened([discovered()]);
  await phone.visit();
  const wrong: object[] = [
    { encoder: "contrast-1" },
    { labels: [0, 1] },
    { labels: [0, 2, 0] },
    { name_p_values: [0.01] },
    { moved: [] },
    { lengths: [1] },
    { choices: ["a"] },
    { cell_prototypes: [3] },
    { cell_lengths: [1, 1] },
    { cells: { rows: 1, columns: 1, data: new Uint8Array(4) } },
    { centroids: { rows: 0, columns: 2, data: new Uint8Array() }, labels: [], name_p_values: [] },
  ];
  for (const [at, changes] of wrong.entries()) {
    const phase = PHASE.map(() => 100 + at);
    server.tasks[0] = discovered({ phase, label_names: ["b", "a"], ...changes });
    const { event } = await phone.visit();
    assert.equal(event, at ? "trouble" : "phase over", JSON.stringify(changes));
    assert.equal(await phone.scene(sound(1, 0.3)), "a");
    // It is known from then on all the same.
    await phone.visit();
    assert.equal(server.known[0], hex(phase));
  }
});

test("a phone of another encoder starts anew, and keeps its ledger", async () => {
  const { tasks } = await tasksOf("statistics: nothing, it takes part");
  const { phone, server, store } = await opened(tasks);
  await phone.hear(sound(1, 0));
  await all(phone);
  server.tasks.push(discovered());
  await phone.visit();
  const { leader, helper } = await tasksOf("offer: there is none");
  const other = openPhone({
    ...{ server: "https://earshot.example.org", leader, helper, store, fetch: server.fetch },
    encoder: points("contrast-1"),
  });
  await assert.rejects(other.scene(sound(1, 0)), WrongStateError);
  await other.visit();
  assert.deepEqual(await other.recordings(), []);
  await assert.rejects(other.scene(sound(1, 0)), WrongStateError);
  assert.equal((await other.ledger()).length, 2);
});

test("a phone takes part, enters it into its ledger, and says what it lacks", async () => {
  const { tasks } = await tasksOf("nothing: the next part");
  const { phone, server } = await opened(tasks);
  const visits = await all(phone);
  assert.deepEqual(
    visits.map((each) => each.event),
    ["answered", "answered", "waiting"],
  );
  assert.match(visits[0]!.detail, /without recordings/);
  assert.equal(visits[1]!.detail, "report");
  assert.equal(visits[2]!.seconds, 5);
  assert.equal(server.answers.length, 2);
  const ledger = await phone.ledger();
  assert.deepEqual(
    ledger.map(({ step, unit }) => `${step} ${unit}`),
    ["cells 1 recording", "cells 1 phone", "labels recording", "labels phone"],
  );
  assert.ok(ledger.every(({ day }) => day === "2027-01-15"));
  const standing = await phone.standing();
  assert.equal(standing.length, 4);
  for (const { epsilon, largestEpsilon } of standing) {
    assert.ok(epsilon > 0 && epsilon < largestEpsilon);
  }
});

test("what is left of a budget is looked at again before every release", async () => {
  const { tasks, leader, helper } = await tasksOf("nothing: the next part");
  const { phone, server, store } = await opened(tasks);
  await phone.visit();
  const thrifty = openPhone({
    ...{ server: "https://earshot.example.org", leader, helper, store, fetch: server.fetch },
    ...{ encoder: points(), clock: () => NOW, policy: { largest_phone_epsilon: 0.5 } },
  });
  const { event, detail } = await thrifty.visit();
  assert.equal(event, "refused");
  assert.match(detail, /^largest_phone_epsilon: /);
  assert.equal((await thrifty.ledger()).length, 2);
  assert.equal(server.answers.length, 1);
});

test("budgets count days that have passed, not those that a clock says", async () => {
  const [store, later] = [new MemoryStore(), settings({ clock: () => NOW + 400 * DAY })];
  const first = await Memory.open(store, settings());
  await first.expire();
  await first.commit();
  // Before anything was released, a clock may be put right.
  assert.equal((await Memory.open(store, later)).today(), "2028-02-19");
  const memory = await Memory.open(store, settings());
  memory.book([Uint8Array.of(1)]);
  await memory.commit();
  assert.equal((await Memory.open(store, later)).today(), "2027-01-15");
  ownLooks.delete(store.name); // as in a page that has just been opened
  for (let looks = 0; looks < 3; looks++) {
    const shown = await Memory.open(store, later); // and which stores nothing
    assert.equal(shown.today(), "2027-01-22");
    assert.equal(shown.today(), "2027-01-22");
  }
  for (const days of [400, 0, 407, 800]) {
    const kept = await Memory.open(store, settings({ clock: () => NOW + days * DAY }));
    assert.equal(kept.today(), "2027-01-22");
    await kept.commit();
  }
});

test("a clock that is put forward or back gives no year back", async () => {
  const { phones } = await vectors("refused");
  const given = phones.find((each: any) => each.why.includes("ε of a phone is spent (yearly)"));
  assert.equal(given.ledger[0].day, "2026-01-15"); // a day later it would be free again
  for (const days of [0, 2, 400, 36_500, -2, -400]) {
    const found = await played(given, given.now + days * DAY);
    assert.deepEqual(found, [{ rule: "largest_yearly_phone_epsilon" }], `${days}`);
  }
});

test("a server that tells the time tells it to signatures alone", async () => {
  const { tasks } = await tasksOf("nothing: the next part");
  const { phone, server } = await opened(tasks, {
    fetch: (async (address, init): Promise<Response> => {
      const created = /created=(\d+)/.exec(new Headers(init!.headers).get("Signature-Input")!)![1];
      const now = NOW + 400 * DAY;
      if (Number(created) === now) return server.fetch(address, init);
      return problem(401, "stale-signature", { now }, { Date: new Date(1000 * now).toUTCString() });
    }) satisfies typeof fetch,
  });
  await phone.hear(sound(1));
  await all(phone);
  assert.equal(server.answers.length, 2);
  assert.ok((await phone.ledger()).every(({ day }) => day === "2027-01-15"));
  assert.equal((await phone.recordings())[0]!.day, "2027-01-15");
});

test("contacts are counted once, even if the phase fails", async () => {
  const { tasks } = await tasksOf("statistics: nothing, it takes part");
  const { phone, server } = await opened(tasks);
  for (const choice of ["a", "b", "a"]) await phone.label(await phone.hear(sound(1)), choice);
  await all(phone);
  const counted = (await phone.recordings()).map((each) => each.counted);
  assert.deepEqual(counted, [true, true, true]); // more than the length of the phase, 2
  const { detail } = await phone.visit();
  assert.equal(detail, `nothing to do now; in phase ${hex((await phaseOf(phone))!)}`);
  server.tasks.push(
    encode(task, { type: "failed", phase: (await phaseOf(phone))!, reason: "too few" }),
  );
  assert.equal((await phone.visit()).detail, "failed");
  assert.deepEqual(
    (await phone.recordings()).map((each) => each.counted),
    counted,
  );
  assert.equal(((await phone.ending()) as { reason: string }).reason, "too few");
});

async function phaseOf(phone: Client): Promise<Bytes | null> {
  const [entry] = await phone.ledger();
  return entry ? of(String(entry.phase)) : null;
}

test("a refusal is told once, by its rule, and shown until the phone takes part", async () => {
  const few = await tasksOf("statistics: too few phones");
  const other = await tasksOf("offer: there is none");
  const { phone, server } = await opened(few.tasks);
  for (let visit = 0; visit < 2; visit++) {
    const { event, detail, seconds } = await phone.visit();
    assert.deepEqual([event, seconds], ["refused", 3600]);
    assert.match(detail, /^least_phones: /);
  }
  assert.equal(server.refusals.length, 1);
  assert.match(server.refusals[0]!, / least_phones$/);
  assert.match((await phone.refusal())!, /^least_phones: /);
  assert.deepEqual(await phone.ledger(), []);
  server.tasks[0] = other.tasks[0]!;
  assert.match((await phone.visit()).detail, /^wrong_offer: /);
  const { tasks } = await tasksOf("statistics: nothing, it takes part");
  server.tasks[0] = tasks[0]!;
  await phone.visit();
  assert.equal(await phone.refusal(), null);
  const quiet = await opened(few.tasks, { tellRefusals: false });
  assert.equal((await quiet.phone.visit()).event, "refused");
  assert.deepEqual(quiet.server.refusals, []);
});

test("learning phases and Bell et al.'s sum are refused by name", async () => {
  const { tasks } = await vectors("messages");
  const { phone, server } = await opened([]);
  const of_ = (type: string): Bytes =>
    of(tasks.find((each: any) => each.json.type === type).messagepack);
  for (const type of ["cluster", "global-centroids", "share-keys", "mask-input", "unmask"]) {
    server.tasks[0] = of_(type);
    const { event, detail } = await phone.visit();
    assert.equal(event, "refused", type);
    assert.match(detail, /^protocol: .*(learning phases|Bell et al)/);
  }
  assert.deepEqual(await phone.ledger(), []);
  assert.equal(server.answers.length, 0);
});

test("an answer that comes too late is told so, and visits that fail become rarer", async () => {
  const { tasks } = await tasksOf("statistics: nothing, it takes part");
  const { phone, server } = await opened(tasks);
  server.before = (path) => {
    if (path === "/v1/answer") server.tasks.length = 0;
  };
  assert.deepEqual(await phone.visit(), { event: "too late", detail: "unexpected", seconds: 1 });
  server.before = () => {
    throw new TypeError("away");
  };
  for (const seconds of [2, 4, 8]) {
    const found = await phone.visit();
    assert.deepEqual([found.event, found.seconds], ["trouble", seconds]);
  }
  server.before = () => {};
  assert.equal((await phone.visit()).event, "waiting");
});

test("a phone enrols once, with the key that it has stored, and leaves", async () => {
  const { phone, server, store } = await opened([], { invitation: undefined });
  await assert.rejects(phone.visit(), NotEnrolledError);
  await assert.rejects(phone.leave(), NotEnrolledError);
  assert.deepEqual(server.requests, []);
  const again = await opened();
  again.server.key = "another phone's";
  await assert.rejects(again.phone.visit(), InvitationRefusedError);
  again.server.key = null;
  await again.phone.visit();
  await again.phone.visit();
  const enrolments = again.server.requests.filter((path) => path === "/v1/phones");
  assert.equal(enrolments.length, 2); // one was refused
  const key = again.server.key;
  again.server.after = () => Promise.reject(new TypeError("lost"));
  assert.equal((await again.phone.visit()).event, "trouble");
  await assert.rejects(again.phone.leave(), /cannot be reached/);
  again.server.after = () => {};
  await again.phone.leave(); // the server has forgotten the phone by now: that is fine
  assert.equal(again.server.key, null);
  await assert.rejects(again.phone.leave(), NotEnrolledError);
  await again.phone.visit();
  assert.notEqual(again.server.key, key);
  store.close();
});

test("what is forgotten and the key of a phone that leaves are gone from the disk", async () => {
  const renewed: boolean[] = [];
  class Watched extends MemoryStore {
    override commit(changes: Changes, renew = false): Promise<void> {
      renewed.push(renew);
      return super.commit(changes);
    }
  }
  const { phone } = await opened([], { store: new Watched() });
  for (const [work, renews] of [
    [() => phone.hear(sound(1)), false],
    [() => phone.forget(1), true],
    [() => phone.visit(), false],
    [() => phone.leave(), true],
  ] as const) {
    await work();
    assert.equal(renewed.at(-1), renews);
  }
});

test("whatever a visit waits for, a phone hears, labels and forgets", async () => {
  const { tasks } = await tasksOf("nothing: the next part");
  const few = await tasksOf("statistics: too few phones");
  for (const [at, given, event] of [
    ["/v1/phones", [], "waiting"],
    ["/v1/task", [], "waiting"],
    ["/v1/answer", tasks, "answered"],
    ["/v1/refusal", few.tasks, "refused"],
  ] as const) {
    const { phone, server, store } = await opened(given);
    const other = await tab({ phone, server, store });
    const { asked, answer } = silent(server, at);
    const visit = phone.visit();
    await asked;
    for (const each of [phone, other]) {
      await each.label(await each.hear(sound(1)), "a");
      await each.told();
    }
    await phone.forget(1);
    assert.equal((await other.recordings()).length, 1, at);
    answer();
    assert.equal((await visit).event, event);
    assert.equal((await phone.recordings())[0]!.choice, "a");
  }
  const { phone, server } = await opened();
  await phone.visit();
  const { asked, answer } = silent(server, "/v1/leave");
  const left = phone.leave();
  await asked;
  assert.equal(await phone.hear(sound(1)), 1);
  answer();
  await left;
  assert.deepEqual((await phone.recordings()).length, 1);
});

test("what changes a phone waits for its turn", async () => {
  const { phone, store } = await opened();
  await phone.hear(sound(1));
  const done: string[] = [];
  let [took, free] = [(): void => {}, (): void => {}];
  const taken = new Promise<void>((resolve) => (took = resolve));
  const other = navigator.locks.request(store.name, async () => {
    const freed = new Promise<void>((resolve) => (free = resolve));
    took();
    await freed;
    done.push("another tab's");
  });
  await taken;
  const calls = [
    phone.label(1, "a").then(() => done.push("label")),
    phone.forget(1).then(() => done.push("forget")),
    phone.told().then(() => done.push("told")),
    phone.erase().then(() => done.push("erase")),
  ];
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.deepEqual(done, []);
  free();
  await Promise.all([other, ...calls]);
  assert.deepEqual(done, ["another tab's", "label", "forget", "told", "erase"]);
});

test("of two visits the second is told that the phone is busy, and whoever leaves waits", async () => {
  const made = await opened();
  const { phone, server } = made;
  const other = await tab(made);
  const { asked, answer } = silent(server, "/v1/task");
  const visit = phone.visit();
  await asked;
  for (const each of [phone, other]) await assert.rejects(each.visit(), BusyError);
  const calls = [other.enrol("code"), other.leave()];
  answer();
  assert.equal((await visit).event, "waiting");
  await Promise.all(calls);
  assert.deepEqual(server.requests, ["/v1/phones", "/v1/task", "/v1/leave"]);
  assert.equal((await other.visit()).event, "waiting");
});

test("a phone that is erased or leaves during a visit writes and sends nothing more", async () => {
  const { tasks } = await tasksOf("nothing: the next part");
  const few = await tasksOf("statistics: too few phones");
  const meanwhile: Record<string, (made: Opened) => Promise<void>> = {
    erased: ({ phone }) => phone.erase(),
    "erased in another tab": async (made) => (await tab(made)).erase(),
    "another phone": async ({ store }) => {
      await store.erase();
      const memory = await Memory.open(store, settings());
      memory.state.seed = new Uint8Array(32).fill(9);
      await memory.commit();
    },
    left: async ({ store }) => {
      const memory = await Memory.open(store, settings());
      memory.leave();
      await memory.commit();
    },
  };
  for (const [how, change] of Object.entries(meanwhile)) {
    for (const [at, given] of [
      ["/v1/phones", tasks],
      ["/v1/task", tasks],
      ["/v1/task", [discovered()]],
      ["/v1/task", few.tasks],
      ["/v1/refusal", few.tasks],
    ] as const) {
      const made = await opened(given);
      const { phone, server, store } = made;
      const { asked, answer } = silent(server, at);
      const visit = phone.visit();
      await asked;
      await change(made);
      const before = [...(await store.read(""))];
      answer();
      await assert.rejects(visit, NotEnrolledError, `${how}, ${at}`);
      assert.deepEqual([...(await store.read(""))], before, `${how}, ${at}`);
      assert.equal(server.requests.at(-1), at);
    }
  }
});

test("an answer whose ledger was erased is not sent again", async () => {
  const { tasks } = await tasksOf("nothing: the next part");
  const { phone, server, store } = await opened(tasks);
  const { asked, answer } = silent(server, "/v1/answer");
  server.after = (path) => {
    if (path === "/v1/answer") throw new TypeError("lost");
  };
  const visit = phone.visit();
  await asked;
  await phone.erase();
  answer();
  await assert.rejects(visit, NotEnrolledError);
  assert.equal(server.requests.filter((path) => path === "/v1/answer").length, 1);
  assert.equal((await store.read("")).size, 0);
});

test("a recording that is forgotten during a visit is not in its answer", async () => {
  const { tasks } = await tasksOf("statistics: nothing, it takes part");
  const { phone, server } = await opened(tasks);
  for (const choice of ["a", "b", "a"]) await phone.label(await phone.hear(sound(1)), choice);
  const { asked, answer } = silent(server, "/v1/task");
  const visit = phone.visit();
  await asked;
  await phone.forget(3);
  answer();
  assert.equal((await visit).event, "answered");
  // The phase asks for the newest two.
  const counted = (await phone.recordings()).map((each) => each.counted);
  assert.deepEqual(counted, [true, true]);
});

test("two visits whose lock was lost answer one task alike, and book it once", async () => {
  const { tasks } = await tasksOf("nothing: the next part");
  const made = await opened(tasks);
  const { phone, server, store } = made;
  const { asked, answer } = silent(server, "/v1/task");
  const first = phone.visit().catch((error: Error) => error.name);
  await asked;
  await navigator.locks.request(`${store.name} visit`, { steal: true }, async () => {});
  assert.equal(await first, "AbortError"); // while its work goes on
  const again = silent(server, "/v1/task");
  const second = (await tab(made)).visit();
  await again.asked;
  answer();
  again.answer();
  assert.equal((await second).event, "answered");
  const sent = (): number => server.requests.filter((path) => path === "/v1/answer").length;
  while (sent() < 2) await new Promise((resolve) => setTimeout(resolve, 1));
  assert.equal(server.answers.length, 1); // another one would have been taken for the next task's
  assert.equal((await phone.ledger()).length, 2);
});

test("a browser that fails to make a key by chance is not taken for one without the curve", async () => {
  const { phone } = await opened();
  const { generateKey } = SubtleCrypto.prototype;
  SubtleCrypto.prototype.generateKey = async () => {
    throw new DOMException("it failed", "OperationError");
  };
  try {
    assert.equal((await phone.visit()).event, "waiting");
  } finally {
    SubtleCrypto.prototype.generateKey = generateKey;
  }
});

test("a browser without one of the curves is named before a code is used", async () => {
  const { generateKey } = SubtleCrypto.prototype;
  for (const curve of ["Ed25519", "X25519"]) {
    const { phone, server, store } = await opened();
    SubtleCrypto.prototype.generateKey = async function (this: SubtleCrypto, ...given: any[]) {
      if (given[0] === curve) throw new DOMException("unknown", "NotSupportedError");
      return (generateKey as any).apply(this, given);
    } as any;
    try {
      for (const work of [
        () => phone.visit(),
        () => phone.enrol("code"),
        () => phone.hear(sound(1)),
        () => phone.visit(),
      ]) {
        await assert.rejects(work(), UnsupportedBrowserError);
        await assert.rejects(work(), new RegExp(`Chrome 137.* lacks ${curve} in WebCrypto`));
      }
      assert.deepEqual([server.requests, (await store.read("")).size], [[], 0]);
    } finally {
      SubtleCrypto.prototype.generateKey = generateKey;
    }
    assert.equal((await phone.visit()).event, "waiting");
  }
});

test("everything is exported but keys, and erased with the ledger", async () => {
  const { tasks } = await tasksOf("nothing: the next part");
  const { phone, server, store } = await opened(tasks);
  await phone.label(await phone.hear(sound(1, 0)), "b");
  await all(phone);
  const text = JSON.stringify(await phone.export());
  const found = JSON.parse(text);
  assert.deepEqual(found.ledger, JSON.parse(JSON.stringify(await phone.ledger())));
  assert.equal(found.recordings[0].embedding.length, 128);
  assert.equal(found.recordings[0].choice, "b");
  assert.equal(found.phase.parameters.type, "discovery");
  assert.equal(found.name, "phone-1");
  const state = hex((await store.read("state")).get("state")!);
  const secret = /a473656564c420([0-9a-f]{64})/.exec(state)![1]!; // "seed", and 32 bytes
  assert.ok(!text.includes(secret));
  await phone.erase();
  assert.equal((await store.read("")).size, 0);
  assert.deepEqual([await phone.recordings(), await phone.ledger()], [[], []]);
  assert.equal(server.key !== null, true);
});

test("a store that another version of the phone wrote is refused as one", async () => {
  const { phone, store } = await opened([]);
  await phone.hear(sound(1));
  const state = unpack((await store.read("state")).get("state")!, 2 ** 20) as Map<string, Wire>;
  const other = new Map([...state, ["mood", 1]]);
  await store.commit(new Map([["state", pack(other)]]));
  const refused = await phone.recordings().then(
    () => null,
    (error: Error) => error,
  );
  assert.equal(refused?.name, "DamagedStoreError");
  const said = "row 'state' is not what this version writes: unknown field 'mood'";
  assert.equal(refused?.message, said);
});

test("a phone whose ledger is not whole releases nothing, and hears on", async () => {
  const { tasks } = await tasksOf("nothing: the next part");
  for (const spoil of ["last", "first", "changed", "all", "length"]) {
    const { phone, server, store } = await opened(tasks);
    await phone.visit();
    const rows = [...(await store.read("ledger/"))];
    assert.equal(rows.length, 2);
    const [name, content] = spoil === "last" ? rows.at(-1)! : rows[0]!;
    const other = spoil === "changed" ? rows.at(-1)![1] : null;
    const gone = [...(await store.read("ledger")).keys()].map((each) => [each, null] as const);
    await store.commit(
      new Map(spoil === "all" ? gone : [[spoil === "length" ? "ledger" : name, other]]),
    );
    await assert.rejects(phone.visit(), LostLedgerError);
    await assert.rejects(phone.ledger(), LostLedgerError);
    assert.equal(server.answers.length, 1);
    assert.equal(await phone.hear(sound(1)), 1);
    assert.ok(content.length);
  }
});

test("a phone enrols once, with a code that it does not keep", async () => {
  const { phone, server, store } = await opened([], { invitation: undefined });
  await assert.rejects(phone.visit(), NotEnrolledError);
  server.before = () => Promise.reject(new Error("no network"));
  await assert.rejects(phone.enrol("welcome-7"), UnavailableError);
  server.before = () => {};
  server.key = "another phone's";
  await assert.rejects(phone.enrol("welcome-7"), InvitationRefusedError);
  server.key = null;
  await phone.enrol("welcome-7");
  await phone.enrol("another code");
  assert.equal((await phone.visit()).event, "waiting");
  assert.deepEqual(server.requests.slice(-2), ["/v1/phones", "/v1/task"]);
  const kept = [...(await store.read(""))].map(([, row]) => new TextDecoder().decode(row));
  assert.ok(!kept.join().includes("welcome"));
  store.close();
});

test("operators are named by their keys, or by the digits that they print", async () => {
  const { leader, helper, tasks } = await tasksOf("statistics: nothing, it takes part");
  const printed = { leader: hex(leader).toUpperCase(), helper: hex(helper) };
  const { phone, server, store } = await opened(tasks, printed);
  await all(phone);
  assert.ok(server.answers.length > 0);
  store.close();
});

test("with the first recording a page asks for a store that lasts", async () => {
  const { phone } = await opened();
  const own = Object.getOwnPropertyDescriptor(navigator, "storage");
  let [asked, granted] = [0, false];
  const storage = {
    persist: async () => {
      if (++asked === 2) throw new TypeError("not for this page");
      return (granted = true);
    },
    persisted: async () => granted,
  };
  Object.defineProperty(navigator, "storage", { value: storage, configurable: true });
  try {
    await phone.poll();
    assert.deepEqual([asked, await phone.isPersistent()], [0, false]);
    await phone.hear(sound(1));
    await phone.hear(sound(1));
    assert.deepEqual([asked, await phone.isPersistent()], [1, true]);
    await phone.erase();
    assert.equal(await phone.hear(sound(1)), 1); // whatever the browser says
    assert.equal(asked, 2);
    Object.defineProperty(navigator, "storage", { value: undefined, configurable: true });
    assert.equal(await (await opened()).phone.hear(sound(1)), 1);
    assert.equal(await phone.isPersistent(), false);
  } finally {
    if (own) Object.defineProperty(navigator, "storage", own);
    else delete (navigator as { storage?: unknown }).storage;
  }
});

if (typeof indexedDB !== "undefined") {
  test("a phone whose database the browser has made anew says so, until it is erased", async () => {
    const { tasks } = await tasksOf("nothing: the next part");
    const store = new SealedRows(undefined, `lost ${Date.now()}`);
    const { phone, server } = await opened(tasks, { store });
    await phone.visit();
    const key = server.key;
    const request = indexedDB.deleteDatabase(store.name);
    await new Promise((resolve) => (request.onsuccess = resolve));
    const again = new SealedRows(undefined, store.name);
    for (const lost of [phone, (await opened(tasks, { store: again })).phone]) {
      for (const work of [
        () => lost.visit(),
        () => lost.hear(sound(1)),
        () => lost.ledger(),
        () => lost.recordings(),
        () => lost.standing(),
        () => lost.export(),
      ]) {
        await assert.rejects(work(), LostStoreError);
      }
    }
    assert.deepEqual(server.requests.slice(-1), ["/v1/answer"]); // since then it was silent
    await phone.erase();
    server.key = null;
    assert.equal((await phone.visit()).event, "trouble"); // it has not joined this phase
    assert.ok(server.key !== key);
    assert.deepEqual(await phone.ledger(), []);
    await phone.erase();
  });
}

test("what cannot be a phone is refused when it is opened", async () => {
  for (const [changes, error] of [
    [{ server: "http://earshot.example.org" }, InvalidInputError],
    [{ leader: new Uint8Array(31) }, InvalidInputError],
    [{ leader: new Uint8Array(32), helper: new Uint8Array(32) }, InvalidInputError],
    [{ leader: "ab".repeat(32), helper: "AB".repeat(32) }, InvalidInputError],
    [{ helper: "ab".repeat(31) }, InvalidInputError],
    [{ helper: "0g".repeat(32) }, InvalidInputError],
    [{ policy: { largest_epsilon: -1 } }, InvalidParametersError],
    [{ keepDays: 0 }, InvalidInputError],
  ] as const) {
    await assert.rejects(opened([], changes), error, JSON.stringify(changes));
  }
});
