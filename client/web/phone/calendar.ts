/**
 * The day on which a phone's yearly budgets are charged, although its clock may be wrong.
 *
 * Setting the clock forward would free a year's budget. So time counts only as far as this page has
 * been running since its last look, whatever other pages saw meanwhile. A page's first look cannot
 * know how long no page was open: it counts at most a week, from the clock's last reading to its
 * present one, so that a swinging clock counts once (Python's `calendar`).
 */

import { map, type Of, real } from "../protocol/fields.ts";

/** Most seconds that count between the last look before a start and the first one after it. */
export const LONGEST_OFF = 7 * 86_400;
/** Largest ratio between two correct clocks. */
const SLACK = 1.001;

/** The newest look of any page: counted seconds since 1970, and the clock's reading. */
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
 * `clock` is in seconds since 1970, `uptime` in seconds that this page has been running. `last` is
 * null until the phone has released something: before, nothing can be freed, and the clock is
 * trusted.
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

/** Return the day `days` before another. */
export function daysBefore(day: string, days: number): string {
  return dayOf(Date.parse(`${day}T00:00:00Z`) / 1000 - 86_400 * days);
}
