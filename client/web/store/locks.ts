/** Locks by which all pages with the same phone take turns; closing a page releases its locks. */

import { LocalError, UnsupportedBrowserError } from "../protocol/errors.ts";

/** Milliseconds to wait for a lock. */
const PATIENCE = 30_000;

/** The phone is busy, here or in another tab: nothing was done; try again in a moment. */
export class BusyError extends LocalError {
  override name = "BusyError";

  constructor(message = "busy: this phone is at work, here or in another tab") {
    super(message);
  }
}

/** Run work under this lock; throw `BusyError` if it is held. */
export async function alone<T>(name: string, work: () => Promise<T>): Promise<T> {
  return locks().request(name, { ifAvailable: true }, (lock) => {
    if (lock === null) throw new BusyError();
    return work();
  });
}

/** Run work under this lock once it is free; throw `BusyError` if that takes too long. */
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
  const found = globalThis.navigator?.locks; // Node has a navigator from 21 on
  if (found) return found;
  throw new UnsupportedBrowserError("Web Locks, which only pages of https have");
}
