/**
 * The ledger of everything that a phone has ever released: append-only and chained by SHA-256.
 *
 * Entries are written as Python's ledger writes them. The caller stores new ones before the answer
 * leaves. A chain does not show that its newest entries are missing: the store keeps its length.
 */

import { sha256 } from "../canonical.ts";
import { EarshotError, InvalidInputError, LocalError, WrongStateError } from "../errors.ts";
import { bytes, day, map, type Of } from "../fields.ts";
import { type Bytes, compared, hex, pack, unpack } from "../wire.ts";
import { type Expense, release } from "./accounting.ts";
import { privacyEvent, type Unit } from "./events.ts";

const PHASE_BYTES = 16;
const YEAR_DAYS = 366;
const DAY_MS = 86_400_000;
const LARGEST_ENTRY = 4096;

const ledgerEntry = map({
  phase: bytes(PHASE_BYTES),
  release,
  previous: bytes(32),
  event: privacyEvent,
  day,
});

/** One release of one phase, its event, its day (UTC), and the hash of the entry before it. */
export type LedgerEntry = Of<typeof ledgerEntry>;

/** Entries that are not the ones written: altered, reordered, inserted or cut out. */
export class DamagedLedgerError extends LocalError {
  override name = "DamagedLedgerError";
}

/** Every release of a phone, oldest first; made by `Ledger.open`. */
export class Ledger {
  readonly #entries: LedgerEntry[] = [];
  #head: Bytes = new Uint8Array(32);

  /**
   * Read a ledger from its encoded entries, oldest first, as `append` returned them.
   *
   * Throws `DamagedLedgerError` if an entry does not decode, or does not follow the one before it.
   */
  static async open(entries: Iterable<Bytes> = []): Promise<Ledger> {
    const ledger = new Ledger();
    let number = 0;
    for (const encoded of entries) {
      ledger.#entries.push(decoded(++number, encoded, ledger.#head));
      ledger.#head = await sha256(encoded);
    }
    return ledger;
  }

  /** Every entry, oldest first. */
  get entries(): readonly LedgerEntry[] {
    return this.#entries;
  }

  /**
   * Return what was spent in one unit, oldest first: in a phase, in the 366 days to `today`, or
   * ever.
   *
   * An entry of a future day counts as made today, and none counts as older than those before it:
   * setting the clock back frees nothing.
   */
  expensesOf(unit: Unit, only: { phase?: Bytes; today?: string } = {}): readonly Expense[] {
    let latest = -Infinity;
    return this.#entries.filter((entry) => {
      latest = Math.max(latest, dayNumber(entry.day));
      const age = only.today === undefined ? 0 : dayNumber(only.today) - latest;
      const other = only.phase !== undefined && compared(entry.phase, only.phase) !== 0;
      return entry.release.unit === unit && age < YEAR_DAYS && !other;
    });
  }

  /**
   * Record upcoming releases of a phase on a day in UTC, and return the encoded new entries, oldest
   * first: store them before anything leaves the phone.
   *
   * If storing fails, discard this ledger and read it again from the store. Throws
   * `InvalidInputError` for no releases or one that is not a cost, and `WrongStateError` for a step
   * that is recorded already.
   */
  async append(
    phase: Bytes,
    expenses: readonly Expense[],
    today: string,
  ): Promise<readonly Bytes[]> {
    if (phase.length !== PHASE_BYTES) {
      throw new InvalidInputError(`a phase of ${phase.length} bytes; it has ${PHASE_BYTES}`);
    }
    if (!expenses.length || !expenses.every(isCost)) {
      throw new InvalidInputError("nothing to record, or an ε below 0 or a δ not from 0 to 1");
    }
    this.checkUnreleased(
      phase,
      expenses.map((each) => each.release.step),
    );
    // Both are changed together at the end, so that no other call sees half of it.
    let head = this.#head;
    const added: LedgerEntry[] = [];
    const encoded: Bytes[] = [];
    for (const { release, event } of expenses) {
      const entry = { phase, release, previous: head, event, day: today };
      const written = pack(ledgerEntry.write(entry, true));
      head = await sha256(written);
      added.push(entry);
      encoded.push(written);
    }
    if (compared(this.#head, added[0]!.previous) !== 0) {
      throw new WrongStateError("two releases are being recorded at the same time");
    }
    this.#entries.push(...added);
    this.#head = head;
    return encoded;
  }

  /** Refuse to release a step of a phase twice, by `WrongStateError`. */
  checkUnreleased(phase: Bytes, steps: readonly string[]): void {
    const repeated = this.#entries.find(
      (entry) => compared(entry.phase, phase) === 0 && steps.includes(entry.release.step),
    );
    if (repeated) {
      throw new WrongStateError(
        `${repeated.release.step} of phase ${hex(phase)} has been released already; a step is ` +
          "released once",
      );
    }
  }

  /** Return the ledger for its user, as Python's does: a plain object per release, oldest first. */
  export(): readonly Readonly<Record<string, unknown>>[] {
    return this.#entries.map(({ day, phase, release, event }, at) => {
      return { number: at + 1, day, phase: hex(phase), ...release, event };
    });
  }
}

function decoded(number: number, encoded: Bytes, previous: Bytes): LedgerEntry {
  let entry: LedgerEntry;
  try {
    entry = ledgerEntry.read(unpack(encoded, LARGEST_ENTRY));
  } catch (error) {
    if (!(error instanceof EarshotError)) throw error;
    throw new DamagedLedgerError(`entry ${number} of the ledger is unreadable: ${error.message}`);
  }
  if (compared(entry.previous, previous) !== 0) {
    throw new DamagedLedgerError(`entry ${number} of the ledger does not follow the one before it`);
  }
  if (!isCost(entry)) throw new DamagedLedgerError(`entry ${number} of the ledger is not a cost`);
  return entry;
}

function isCost({ release: { epsilon, delta } }: Expense): boolean {
  return epsilon >= 0 && delta >= 0 && delta <= 1;
}

/** Return the number of a day, in days since 1970. */
function dayNumber(text: string): number {
  return Date.parse(`${text}T00:00:00Z`) / DAY_MS;
}
