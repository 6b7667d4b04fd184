import { classesOf, LabelHierarchy } from "../protocol/environments.js";
import { EarshotError, InvalidInputError, RefusedError } from "../protocol/errors.js";
import { bytes, day, encode, flag, line, list, map, nullable, optional, whole, } from "../protocol/fields.js";
import { matrix, row, rowsOf } from "../protocol/matrix.js";
import { decodeTask, task } from "../protocol/messages.js";
import { choices, encoderName, labelName, LARGEST_LABELS } from "../protocol/phases/parameters.js";
import { placesOf } from "../protocol/phases/places.js";
import { parameters } from "../protocol/phases/plan.js";
import { DamagedLedgerError, Ledger } from "../protocol/privacy/ledger.js";
import { compared, joined, pack, unpack } from "../protocol/wire.js";
import { DamagedStoreError, LostLedgerError } from "../store/interface.js";
import { dayOf, look, lookedAt } from "./calendar.js";
import { expired } from "./expiry.js";
import { defaultHierarchy } from "./labels.js";
const LARGEST_ROW = 64 * 2 ** 20;
const [KNOWN, BEGUN] = [8, 1024];
const NONE = new Uint8Array();
const STATE = "state";
const RECORDING = "recording/";
const LEDGER = "ledger/";
const LENGTH = "ledger";
const membership = map({ phase: bytes(16), index: whole(), parameters, weight: whole(0) });
const state = map({
    encoder: optional(encoderName, ""),
    seed: optional(bytes(0, 32), NONE),
    name: optional(line(64), ""),
    member: nullable(membership),
    begun: optional(bytes(0, 16 * BEGUN), NONE),
    labels: optional(list(labelName, LARGEST_LABELS), []),
    choices,
    met: optional(flag, false),
    known: optional(list(bytes(16), KNOWN), []),
    untold: optional(flag, false),
    refusal: optional(line(1024), ""),
    told: optional(bytes(0, 16), NONE),
    look: nullable(look),
    undated: nullable(day),
    next: optional(whole(1), 1),
    entries: optional(whole(0), 0),
});
const recordingRow = map({
    embedding: matrix,
    day: nullable(day),
    choice: nullable(labelName),
    counted: optional(flag, false),
});
export class Memory {
    settings;
    state;
    #store;
    #before;
    #changes = new Map();
    #recordings = null;
    #ledger = null;
    #renews = false;
    constructor(store, settings, saved) {
        this.#store = store;
        this.settings = settings;
        this.state = saved;
        this.#before = encode(state, saved);
    }
    static async open(store, settings) {
        const saved = (await store.read(STATE)).get(STATE);
        return new Memory(store, settings, read("state", state, saved ?? Uint8Array.of(0x80)));
    }
    async commit(renew = this.#renews) {
        const after = encode(state, this.state);
        if (compared(after, this.#before) !== 0)
            this.#changes.set(STATE, after);
        if (this.#changes.size)
            await this.#store.commit(this.#changes, renew);
        this.#changes.clear();
        this.#before = after;
        this.#renews = false;
    }
    async get(name) {
        const changed = this.#changes.get(name);
        if (changed !== undefined)
            return changed;
        return (await this.#store.read(name)).get(name) ?? null;
    }
    put(name, content) {
        this.#changes.set(name, content);
    }
    async recordings() {
        if (this.#recordings === null) {
            const rows = [...(await this.#store.read(RECORDING))];
            this.#recordings = new Map(rows.map(([name, content]) => [numberIn(name), read(name, recordingRow, content)]));
        }
        return this.#recordings;
    }
    keep(embedding, on) {
        const number = this.state.next++;
        this.change(number, {
            embedding: matrixOf(embedding),
            day: on,
            choice: null,
            counted: false,
        });
        return number;
    }
    change(number, recording) {
        this.#recordings?.set(number, recording);
        this.put(rowName(RECORDING, number), encode(recordingRow, recording));
    }
    async recording(number) {
        const name = rowName(RECORDING, number);
        const content = await this.get(name);
        if (content === null)
            throw new InvalidInputError(`there is no recording ${number}`);
        return read(name, recordingRow, content);
    }
    forget(numbers) {
        for (const number of numbers) {
            this.#recordings?.delete(number);
            this.put(rowName(RECORDING, number), null);
            this.#renews = true;
        }
    }
    get isOfAnotherEncoder() {
        return this.state.encoder !== this.settings.encoder.name;
    }
    async expire() {
        const { encoder, keepDays } = this.settings;
        if (this.isOfAnotherEncoder) {
            if (this.state.encoder) {
                this.forget((await this.recordings()).keys());
                this.leavePhase();
                for (const name of ["result", "labelled"])
                    this.put(name, null);
            }
            this.state.encoder = encoder.name;
        }
        this.today();
        if (keepDays === null)
            return;
        const kept = [...(await this.recordings())];
        const made = kept.map(([number, each]) => [number, each.day]);
        const { numbers, since } = expired(made, this.state.undated, keepDays, this.day);
        this.forget(numbers);
        this.state.undated = since;
    }
    get day() {
        return dayOf(this.settings.clock());
    }
    async points(dimensions) {
        const all = [...(await this.recordings()).values()];
        const values = new Float32Array(all.length * dimensions);
        all.forEach(({ embedding }, at) => {
            const own = Float32Array.from(row(rowsOf(embedding), 0));
            values.set(this.settings.encoder.project(own, dimensions), at * dimensions);
        });
        return { rows: all.length, columns: dimensions, values };
    }
    get hierarchy() {
        return this.settings.hierarchy ?? this.agreed;
    }
    get agreed() {
        const { labels, choices: stated } = this.state;
        if (!labels.length)
            return this.usual;
        if (!stated.length)
            return LabelHierarchy.flat(labels);
        return new LabelHierarchy(labels.map((label, at) => [label, stated[at] ?? []]));
    }
    get usual() {
        return this.settings.hierarchy ?? defaultHierarchy();
    }
    classesOf(given) {
        return classesOf(given, this.agreed, this.usual);
    }
    keepNames(result) {
        this.put(result.type === "labelled" ? "labelled" : "result", encode(task, result));
        if (result.type !== "labelled")
            this.put("labelled", null);
    }
    async names(name) {
        const saved = await this.get(name);
        if (saved === null)
            return null;
        try {
            return decodeTask(saved);
        }
        catch (error) {
            if (!(error instanceof EarshotError))
                throw error;
            return null;
        }
    }
    async places() {
        const [result, labelled] = [await this.names("result"), await this.names("labelled")];
        const [only, samples] = [result ?? labelled, labelled && placesOf(labelled)];
        if (only === null)
            return null;
        const found = placesOf(only);
        const { columns } = found.points;
        const compares = result && samples?.geometry === found.geometry && samples.points.columns === columns;
        if (!samples || !compares)
            return found;
        const named = samples.names.flatMap((name, at) => (name === null ? [] : [at]));
        const rows = named.length + found.points.rows;
        const values = new Float32Array(rows * columns);
        named.forEach((at, to) => values.set(row(samples.points, at), to * columns));
        values.set(found.points.values, named.length * columns);
        return {
            ...found,
            points: { rows, columns, values },
            names: [...named.map((at) => samples.names[at]), ...found.names],
        };
    }
    async ledger() {
        if (this.#ledger)
            return this.#ledger;
        const rows = await this.#store.read(LENGTH);
        const said = rows.get(LENGTH);
        const length = said === undefined ? 0 : read(LENGTH, whole(0), said);
        const entries = [...rows].filter(([name]) => name !== LENGTH).map(([, entry]) => entry);
        const lost = "Without its ledger this phone releases nothing";
        if (entries.length !== length || length < this.state.entries) {
            const needed = Math.max(length, this.state.entries);
            throw new LostLedgerError(`${entries.length} of ${needed} entries. ${lost}`);
        }
        try {
            return (this.#ledger = await Ledger.open(entries));
        }
        catch (error) {
            if (!(error instanceof DamagedLedgerError))
                throw error;
            throw new LostLedgerError(`${error.message}. ${lost}`);
        }
    }
    book(entries) {
        for (const entry of entries)
            this.put(rowName(LEDGER, ++this.state.entries), entry);
        this.put(LENGTH, pack(this.state.entries));
    }
    today() {
        const isNew = this.state.entries === 0;
        this.state.look = lookedAt(isNew ? null : this.state.look, this.settings.clock());
        return dayOf(this.state.look.counted);
    }
    begin(sum) {
        const { begun } = this.state;
        for (let at = 0; at < begun.length; at += sum.length) {
            if (compared(begun.subarray(at, at + sum.length), sum) === 0) {
                throw new RefusedError("a sum begins only once; this one has begun", "repeated");
            }
        }
        this.state.begun = joined(begun, sum).slice(-BEGUN * sum.length);
    }
    end(ending) {
        const { known, met } = this.state;
        if (known.some((each) => compared(each, ending.phase) === 0))
            return false;
        this.state.known = [ending.phase, ...known].slice(0, KNOWN);
        this.state.untold = met || !("centroids" in ending);
        this.put("ending", this.state.untold ? encode(task, ending) : null);
        return true;
    }
    leavePhase() {
        this.state.member = null;
        this.put("answered", null);
    }
}
function rowName(prefix, number) {
    return prefix + String(number).padStart(10, "0");
}
function numberIn(name) {
    return Number(name.slice(name.indexOf("/") + 1));
}
function matrixOf(embedding) {
    const data = new Uint8Array(4 * embedding.length);
    const view = new DataView(data.buffer);
    embedding.forEach((value, at) => view.setFloat32(4 * at, value, true));
    return { rows: 1, columns: embedding.length, data };
}
function read(name, field, content) {
    try {
        return field.read(unpack(content, LARGEST_ROW));
    }
    catch (error) {
        if (!(error instanceof EarshotError))
            throw error;
        throw new DamagedStoreError(`row '${name}' is not what was written: ${error.message}`);
    }
}
