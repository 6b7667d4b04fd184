/** Keeper of a phone's things, as rows of bytes with names, and what can be wrong with it. */

import { LocalError } from "../protocol/errors.ts";
import type { Bytes } from "../protocol/wire.ts";

/** A store that was made with another key, or whose key is gone; nothing was changed. */
export class WrongKeyError extends LocalError {
  override name = "WrongKeyError";
}

/** A row that is not what was written. */
export class DamagedStoreError extends LocalError {
  override name = "DamagedStoreError";
}

/** A ledger that is not what was written: a phone without it releases nothing. */
export class LostLedgerError extends DamagedStoreError {
  override name = "LostLedgerError";
}

/** A store that is gone, and its ledger with it; after `erase`, the phone begins anew. */
export class LostStoreError extends DamagedStoreError {
  override name = "LostStoreError";
}

/** A store that cannot be read or written now: not allowed here, or the disk is full. */
export class StoreUnavailableError extends LocalError {
  override name = "StoreUnavailableError";
}

/** New contents of rows by name; null removes a row. */
export type Changes = ReadonlyMap<string, Bytes | null>;

/** Keeper of a phone's rows. Reading what was not written throws `DamagedStoreError`. */
export interface Store {
  /** Name of the store, which its lock has as well. */
  readonly name: string;

  /** Return the rows whose names begin with `prefix`, in ascending order of their names. */
  read(prefix: string): Promise<ReadonlyMap<string, Bytes>>;

  /**
   * Make changes durable, all or none, before this returns.
   *
   * With `renew`, what they remove or replace is unreadable from then on, also to whoever finds
   * old copies of it on the disk.
   */
  commit(changes: Changes, renew?: boolean): Promise<void>;

  /** Remove everything, the key included. */
  erase(): Promise<void>;

  /** Let go of what is open; the store opens it again when it is used again. */
  close(): void;
}
