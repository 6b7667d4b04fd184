import assert from "node:assert/strict";
import { test } from "node:test";

import { played } from "./phones.ts";
import { of, vectors } from "./vectors.ts";

const TEXT = new TextDecoder("latin1");

/** Whether a task belongs to Bell et al.'s sum, in which this phone has no part by any rule. */
function isBells(task: string): boolean {
  const text = TEXT.decode(of(task));
  const begins = text.includes("parameters") && text.includes("dropout");
  return text.includes("advertise-keys") || (begins && !text.includes("two-operators"));
}

function isAlike(found: any, wanted: any): boolean {
  if (typeof wanted === "number") return Math.abs(found - wanted) <= 1e-9 * Math.abs(wanted);
  if (wanted === null || typeof wanted !== "object") return found === wanted;
  const names = Object.keys(wanted);
  return (
    Object.keys(found).length === names.length &&
    names.every((name) => isAlike(found[name], wanted[name]))
  );
}

test("phones refuse by the rules of the vectors, and book what these book", async () => {
  const { phones } = await vectors("refused");
  let [refused, bells] = [0, 0];
  for (const each of phones) {
    const found = await played(each);
    const wanted = each.outcomes.map((outcome: any, at: number) =>
      isBells(each.tasks[at]) ? { rule: "protocol" } : outcome,
    );
    bells += each.tasks.filter(isBells).length;
    refused += wanted.filter((outcome: any) => outcome.rule).length;
    assert.ok(isAlike(found, wanted), `${each.why}: ${JSON.stringify([found, wanted])}`);
  }
  assert.ok(refused > 100 && bells > 5 && bells < 20, `${refused} refused, ${bells} of Bell's`);
});
