import { sha256 } from "../canonical.js";
import { EarshotError, InvalidInputError, LocalError, WrongStateError } from "../errors.js";
import { bytes, day, map, nullable } from "../fields.js";
import { compared, hex, pack, unpack } from "../wire.js";
import { release } from "./accounting.js";
import { privacyEvent } from "./events.js";
const PHASE_BYTES = 16;
const YEAR_DAYS = 366;
const DAY_MS = 86_400_000;
const LARGEST_ENTRY = 4096;
const ledgerEntry = map({
    phase: bytes(PHASE_BYTES),
    release,
    previous: bytes(32),
    event: privacyEvent,
    day: nullable(day),
});
export class DamagedLedgerError extends LocalError {
}
export class Ledger {
    #entries = [];
    #head = new Uint8Array(32);
    static async open(entries = []) {
        const ledger = new Ledger();
        let number = 0;
        for (const encoded of entries) {
            ledger.#entries.push(decoded(++number, encoded, ledger.#head));
            ledger.#head = await sha256(encoded);
        }
        return ledger;
    }
    get entries() {
        return this.#entries;
    }
    expensesOf(unit, only = {}) {
        let latest = -Infinity;
        return this.#entries.filter((entry) => {
            latest = Math.max(latest, entry.day === null ? -Infinity : dayNumber(entry.day));
            const age = only.today === undefined ? 0 : dayNumber(only.today) - latest;
            const old = entry.day !== null && age >= YEAR_DAYS;
            const other = only.phase !== undefined && compared(entry.phase, only.phase) !== 0;
            return entry.release.unit === unit && !old && !other;
        });
    }
    async append(phase, expenses, today) {
        if (phase.length !== PHASE_BYTES) {
            throw new InvalidInputError(`a phase of ${phase.length} bytes; it has ${PHASE_BYTES}`);
        }
        if (!expenses.length || !expenses.every(isCost)) {
            throw new InvalidInputError("nothing to record, or an ε below 0 or a δ not from 0 to 1");
        }
        this.checkUnreleased(phase, expenses.map((each) => each.release.step));
        let head = this.#head;
        const added = [];
        const encoded = [];
        for (const { release, event } of expenses) {
            const entry = { phase, release, previous: head, event, day: today };
            const written = pack(ledgerEntry.write(entry, true));
            head = await sha256(written);
            added.push(entry);
            encoded.push(written);
        }
        if (compared(this.#head, added[0].previous) !== 0) {
            throw new WrongStateError("two releases are being recorded at the same time");
        }
        this.#entries.push(...added);
        this.#head = head;
        return encoded;
    }
    checkUnreleased(phase, steps) {
        const repeated = this.#entries.find((entry) => compared(entry.phase, phase) === 0 && steps.includes(entry.release.step));
        if (repeated) {
            throw new WrongStateError(`${repeated.release.step} of phase ${hex(phase)} has been released already; a step is ` +
                "released once");
        }
    }
    export() {
        return this.#entries.map((entry, at) => ({
            number: at + 1,
            day: entry.day,
            phase: hex(entry.phase),
            step: entry.release.step,
            mechanism: entry.release.mechanism,
            unit: entry.release.unit,
            epsilon: entry.release.epsilon,
            delta: entry.release.delta,
            event: entry.event,
        }));
    }
}
function decoded(number, encoded, previous) {
    let entry;
    try {
        entry = ledgerEntry.read(unpack(encoded, LARGEST_ENTRY));
    }
    catch (error) {
        if (!(error instanceof EarshotError))
            throw error;
        throw new DamagedLedgerError(`entry ${number} of the ledger is unreadable: ${error.message}`);
    }
    if (compared(entry.previous, previous) !== 0) {
        throw new DamagedLedgerError(`entry ${number} of the ledger does not follow the one before it: entries were altered, ` +
            "reordered, inserted or cut out");
    }
    if (!isCost(entry))
        throw new DamagedLedgerError(`entry ${number} of the ledger is not a cost`);
    return entry;
}
function isCost({ release: { epsilon, delta } }) {
    return epsilon >= 0 && delta >= 0 && delta <= 1;
}
function dayNumber(text) {
    return Date.parse(`${text}T00:00:00Z`) / DAY_MS;
}
