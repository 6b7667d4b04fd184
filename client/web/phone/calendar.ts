/**
 * The day to which a phone's yearly budgets count, by a clock that anybody may have set.
 *
 * A clock that is put forward would free the budget of a year. So days count only as far as this
 * page has been running since its own last look, whatever other pages saw meanwhile. Its first look
 * cannot know how long no page was open: a week counts at most, from what the clock said last to
 * what it says now, so that a clock that swings counts once (Python's `calendar`).
 */

import { map, type Of, real } from "../protocol/fields.ts";

/** Most seconds that count between the last look before a start and the first one after it. */
export const LONGEST_OFF = 7 * 86_400;
/** Largest factor between two clocks that are right. */
const SLACK = 1.001;

/** The newest look of any page: seconds that count since 1970, and the clock. */
export const look = map({ counted: real(), clock: real() });
export type Look = Of<typeof look>;

/** A look of this page that is stored: seconds that counted, and how long the page had run. */
export interface OwnLook {
  readonly counted: number;
  readonly uptime: number;
}

/** This page's newest look at each store, by its name. */
export const ownLooks = new Map<string, OwnLook>();

/**
 * Return a new look at the clock, later than the last by no more than may have passed since.
 *
 * `clock` is in seconds since 1970, `uptime` in those that this page has been running. Before the
 * phone has released anything nothing can be freed, and the clock is believed: then `last` is null.
 */
export function lookedAt(last: Look | null, clock: number, uptime: number, own?: OwnLook): Look {
  if (last === null) return { counted: clock, clock };
  const { counted } = last;
  const most = own
    ? Math.min(counted, own.counted) + SLACK * (uptime - own.uptime)
    : Math.min(Math.min(counted, last.clock) + LONGEST_OFF, clock);
  const passed = counted + Math.max(0, clock - last.clock);
  return { counted: Math.max(counted, Math.min(passed, most)), clock };
}

/** Return a moment's day in UTC, such as `2026-01-08`. */
export function dayOf(seconds: number): string {
  return new Date(1000 * seconds).toISOString().slice(0, 10);
}

/** Return the day that many days before another. */
export function daysBefore(day: string, days: number): string {
  return dayOf(Date.parse(`${day}T00:00:00Z`) / 1000 - 86_400 * days);
}
