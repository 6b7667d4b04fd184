/** Expiry of recordings: none is kept for longer than its phone was told to keep it. */

import { daysBefore } from "./calendar.ts";

/** Default number of days for which recordings are kept. */
export const KEEP_DAYS = 28;

/**
 * Return the numbers of recordings that are `keepDays` days old, and the day from which recordings
 * without a day are to be counted, or null if there are none.
 *
 * `made`: number and day of each recording; one that is still to come (a clock was wrong) is taken
 * to be as old as `since`, the first day on which such a one was met.
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
