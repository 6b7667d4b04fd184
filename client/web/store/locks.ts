/** The lock by which one page at a time is the phone, of all that a browser has open. */

import { LocalError, WrongStateError } from "../protocol/errors.ts";

/** The phone is busy, here or in another page: nothing was done; try again in a while. */
export class BusyError extends LocalError {
  override name = "BusyError";
}

/**
 * Do some work as the only page that does any with this lock; a page that is closed frees it.
 *
 * Throws `BusyError` where another one has it.
 */
export async function alone<T>(name: string, work: () => Promise<T>): Promise<T> {
  const { locks } = navigator;
  if (locks === undefined) {
    throw new WrongStateError("no phone: browsers let only pages of https keep one");
  }
  return locks.request(name, { ifAvailable: true }, async (lock) => {
    if (lock === null) throw new BusyError("busy: this phone is at work, here or in another tab");
    return work();
  });
}
