/** Locks by which all pages with the same phone take turns; a page that is closed frees its own. */

import { LocalError, UnsupportedBrowserError } from "../protocol/errors.ts";

/** Milliseconds for which work waits for its turn. */
const PATIENCE = 30_000;

/** The phone is busy, here or in another tab: nothing was done; try again in a moment. */
export class BusyError extends LocalError {
  override name = "BusyError";

  constructor(message = "busy: this phone is at work, here or in another tab") {
    super(message);
  }
}

/** Do some work while nobody else holds this lock; throw `BusyError` where somebody does. */
export async function alone<T>(name: string, work: () => Promise<T>): Promise<T> {
  return locks().request(name, { ifAvailable: true }, (lock) => {
    if (lock === null) throw new BusyError();
    return work();
  });
}

/** Do some work once nobody else holds this lock; throw `BusyError` where that takes too long. */
export async function inTurn<T>(
  name: string,
  work: () => Promise<T>,
  patience = PATIENCE,
): Promise<T> {
  const signal = AbortSignal.timeout(patience);
  let isOurs = false;
  try {
    return await locks().request(name, { signal }, () => {
      isOurs = true;
      return work();
    });
  } catch (error) {
    throw signal.aborted && !isOurs ? new BusyError() : error;
  }
}

function locks(): LockManager {
  if (navigator.locks) return navigator.locks;
  throw new UnsupportedBrowserError("Web Locks, which only pages of https have");
}
