/**
 * The day to which a phone's yearly budgets count, by a clock that anybody may have set.
 *
 * A clock that is put forward would free the budget of a year. So days count only as far as the
 * page has been running since it last looked; after a new start, where nobody knows how long it was
 * closed, a week counts at most (Python's `calendar`).
 */

import { map, type Of, real } from "../protocol/fields.ts";

/** Most seconds that count between the last look before a start and the first one after it. */
export const LONGEST_OFF = 7 * 86_400;
/** Largest factor between two clocks that are right. */
const SLACK = 1.001;

/** The newest look: seconds that count since 1970, both clocks, and which start it was. */
export const look = map({ counted: real(), clock: real(), uptime: real(), start: real() });
export type Look = Of<typeof look>;

/** Which start of this script it is, told apart by chance. */
const START = crypto.getRandomValues(new Uint32Array(1))[0]!;

/**
 * Return a new look at the clocks, later than the last by no more than may have passed since.
 *
 * `clock` is in seconds since 1970. Before the phone has released anything nothing can be freed,
 * and the clock is believed: then `last` is null.
 */
export function lookedAt(
  last: Look | null,
  clock: number,
  uptime = performance.now() / 1000,
  start = START,
): Look {
  if (last === null) return { counted: clock, clock, uptime, start };
  const most = last.start === start ? SLACK * (uptime - last.uptime) : LONGEST_OFF;
  const passed = Math.min(Math.max(0, clock - last.clock), Math.max(0, most));
  return { counted: last.counted + passed, clock, uptime, start };
}

/** Return a moment's day in UTC, such as `2026-01-08`. */
export function dayOf(seconds: number): string {
  return new Date(1000 * seconds).toISOString().slice(0, 10);
}

/** Return the day that many days before another. */
export function daysBefore(day: string, days: number): string {
  return dayOf(Date.parse(`${day}T00:00:00Z`) / 1000 - 86_400 * days);
}
