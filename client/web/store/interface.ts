/** Interface of a phone's store, which has named rows of bytes, and its errors. */

import { LocalError } from "../protocol/errors.ts";
import type { Bytes } from "../protocol/wire.ts";

/** A store that was made with another key, or whose key is gone; nothing has changed. */
export class WrongKeyError extends LocalError {
  override name = "WrongKeyError";
}

/** A damaged row. */
export class DamagedStoreError extends LocalError {
  override name = "DamagedStoreError";
}

/** A damaged or incomplete ledger; a phone without it releases nothing. */
export class LostLedgerError extends DamagedStoreError {
  override name = "LostLedgerError";
}

/** A store that is gone, with its ledger; after `erase`, the phone starts over. */
export class LostStoreError extends DamagedStoreError {
  override name = "LostStoreError";
}

/** A store that cannot be read or written now: not allowed here, or the disk is full. */
export class StoreUnavailableError extends LocalError {
  override name = "StoreUnavailableError";
}

/** New contents of rows by name; null removes a row. */
export type Changes = ReadonlyMap<string, Bytes | null>;

/** Store of a phone's rows. Reading a damaged row throws `DamagedStoreError`. */
export interface Store {
  /** Name of the store and of its lock. */
  readonly name: string;

  /** Return the rows whose names begin with `prefix`, in ascending order of their names. */
  read(prefix: string): Promise<ReadonlyMap<string, Bytes>>;

  /**
   * Make changes durable, all or none.
   *
   * With `renew`, what they remove or replace is unreadable from then on, even in old copies on the
   * disk.
   */
  commit(changes: Changes, renew?: boolean): Promise<void>;

  /** Remove everything, the key included. */
  erase(): Promise<void>;

  /** Close the store; its next use opens it again. */
  close(): void;
}
