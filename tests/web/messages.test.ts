import assert from "node:assert/strict";
import { test } from "node:test";

import { MalformedMessageError, RefusedError } from "../../client/web/protocol/errors.ts";
import { encode, type Field } from "../../client/web/protocol/fields.ts";
import {
  answer,
  askTask,
  decodeTask,
  encodeReport,
  enrol,
  enrolled,
  leave,
  openingOf,
  type PartTask,
  refusalOf,
  refuse,
  task,
} from "../../client/web/protocol/messages.ts";
import { canonical } from "../../client/web/protocol/canonical.ts";
import { RULES } from "../../client/web/protocol/rules.ts";
import { hex, pack, unpack } from "../../client/web/protocol/wire.ts";
import { of, read, vectors } from "./vectors.ts";

const { tasks, answers, bodies, malformed_tasks, malformed_answers } = await vectors("messages");
const LEARNING = ["cluster", "global-centroids", "top-centroids"];
const BELLS = ["share-keys", "mask-input", "unmask"];

test("every task that is spoken reads alike from both encodings, and writes itself", () => {
  const spoken = tasks.filter(
    ({ json }: any) =>
      ![...LEARNING, ...BELLS].includes(json.type) && json.advertise?.type !== "advertise-keys",
  );
  assert.equal(new Set(spoken.map(({ json }: any) => json.type)).size, 8);
  for (const { json, messagepack } of spoken) {
    const found = decodeTask(of(messagepack));
    assert.equal(refusalOf(found), null);
    assert.deepEqual(found, read(task, json));
    const again = encode(task, found);
    assert.deepEqual(decodeTask(again), found);
    assert.equal(hex(canonical(task, decodeTask(again))), hex(canonical(task, found)));
  }
});

test("learning phases and Bell's sum are refused by name", () => {
  let seen = 0;
  for (const { json, messagepack } of tasks) {
    const isBells = BELLS.includes(json.type) || json.advertise?.type === "advertise-keys";
    if (!LEARNING.includes(json.type) && !isBells) continue;
    const found = decodeTask(of(messagepack));
    const refused = refusalOf(found);
    assert.ok(refused instanceof RefusedError);
    assert.equal(refused.rule, "protocol");
    assert.match(refused.message, LEARNING.includes(json.type) ? /learning/ : /Bell/);
    // It can tell the server of which phase it speaks, where the task says so.
    if (json.phase) assert.equal(btoa(String.fromCharCode(...(found as any).phase)), json.phase);
    if ("advertise" in found) {
      assert.throws(() => openingOf(found as PartTask), RefusedError);
    }
    seen += 1;
  }
  assert.ok(seen > 12);
});

test("what no task is, is refused", () => {
  for (const { why, messagepack } of malformed_tasks) {
    assert.throws(() => decodeTask(of(messagepack)), MalformedMessageError, why);
  }
  const [first] = tasks.filter(({ json }: any) => json.type === "failed");
  assert.throws(() => decodeTask(of(first.messagepack), 10), MalformedMessageError);
  for (const text of ["__proto__", "constructor", "toString", ""]) {
    assert.throws(() => decodeTask(pack(new Map([["type", text]]))), MalformedMessageError);
  }
});

test("a report is written as Python writes it; what is none is refused", () => {
  const reports = answers.filter(({ json }: any) => json.type === "report");
  assert.equal(new Set(reports.map(({ json }: any) => json.public === "")).size, 2);
  for (const { json, messagepack } of reports) {
    const { type: _, ...report } = read(answer, json);
    assert.equal(hex(encodeReport(report)), messagepack);
  }
  for (const { why, messagepack } of malformed_answers) {
    assert.throws(() => answer.read(unpack(of(messagepack), 2 ** 20)), MalformedMessageError, why);
  }
});

test("every body is read and written", () => {
  const fields: Record<string, Field<any>> = {
    Enrol: enrol,
    Enrolled: enrolled,
    AskTask: askTask,
    Refuse: refuse,
  };
  const rules = new Set();
  for (const { name, json, messagepack } of bodies) {
    const field = fields[name];
    if (field === undefined) {
      assert.equal(name, "Problem");
      continue;
    }
    const found = field.read(unpack(of(messagepack), 2 ** 20));
    assert.deepEqual(found, read(field, json));
    assert.equal(hex(encode(field, found)), messagepack);
    if (name === "Refuse") rules.add(found.rule);
  }
  assert.deepEqual(rules, new Set(RULES));
  assert.equal(hex(encode(leave, {})), "80");
  for (const phone of ["", "a b", "a".repeat(65), "a\n"]) {
    assert.throws(() => enrolled.read(new Map([["phone", phone]])), MalformedMessageError);
  }
});
