/** Expiry of recordings after the configured number of days. */

import { daysBefore } from "./calendar.ts";

/** Default number of days for which recordings are kept. */
export const KEEP_DAYS = 28;

/**
 * Return the numbers of recordings that are at least `keepDays` days old, and the day from which
 * the age of recordings without a day counts; null if there are none.
 *
 * `made`: number and day of each recording. A day in the future (a clock was wrong) counts as none:
 * such recordings are as old as `since`, the first day on which one was met.
 */
export function expired(
  made: Iterable<readonly [number, string | null]>,
  since: string | null,
  keepDays: number,
  today: string,
): { readonly numbers: readonly number[]; readonly since: string | null } {
  const last = daysBefore(today, keepDays);
  const all = [...made];
  const undated = all.filter(([, day]) => day === null || day > today);
  const numbers = all.filter(([, day]) => day !== null && day <= last).map(([number]) => number);
  if (!undated.length) return { numbers, since: null };
  if (since === null || since > last) return { numbers, since: since ?? today };
  return { numbers: [...numbers, ...undated.map(([number]) => number)], since: null };
}
