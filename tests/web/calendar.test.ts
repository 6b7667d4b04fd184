import assert from "node:assert/strict";
import { test } from "node:test";

import { dayOf, daysBefore, LONGEST_OFF, lookedAt } from "../../client/web/phone/calendar.ts";
import { expired } from "../../client/web/phone/expiry.ts";

const DAY = 86_400;
const NOW = 1.8e9;

test("before anything was released the clock is believed", () => {
  const look = lookedAt(null, NOW, 5, 1);
  assert.deepEqual(look, { counted: NOW, clock: NOW, uptime: 5, start: 1 });
});

test("while a page runs, no more days pass than it has been running", () => {
  const first = lookedAt(null, NOW, 0, 1);
  assert.equal(lookedAt(first, NOW + 3600, 3600, 1).counted, NOW + 3600);
  assert.ok(lookedAt(first, NOW + 400 * DAY, 3600, 1).counted <= NOW + 3604);
  assert.equal(lookedAt(first, NOW - DAY, 3600, 1).counted, NOW); // back frees nothing either
  const back = lookedAt(first, NOW - DAY, 3600, 1);
  assert.equal(lookedAt(back, NOW - DAY + 60, 3660, 1).counted, NOW + 60);
  assert.equal(lookedAt(first, NOW + 5, -7, 1).counted, NOW);
});

test("after a new start a week counts at most", () => {
  const first = lookedAt(null, NOW, 5000, 1);
  assert.equal(lookedAt(first, NOW + DAY, 1, 2).counted, NOW + DAY);
  assert.equal(lookedAt(first, NOW + 400 * DAY, 1, 2).counted, NOW + LONGEST_OFF);
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
