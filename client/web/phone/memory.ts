/**
 * A phone's memory during one operation: what it reads from its store, and its changes, which reach
 * the store in one transaction at the end, or not at all.
 */

import { classesOf, LabelHierarchy } from "../protocol/environments.ts";
import { EarshotError, InvalidInputError, RefusedError } from "../protocol/errors.ts";
import {
  bytes,
  day,
  encode,
  type Field,
  flag,
  line,
  list,
  map,
  nullable,
  type Of,
  optional,
  whole,
} from "../protocol/fields.ts";
import { matrix, row, type Rows, rowsOf } from "../protocol/matrix.ts";
import { type Ending, task } from "../protocol/messages.ts";
import { choices, encoderName, labelName, LARGEST_LABELS } from "../protocol/phases/parameters.ts";
import { type Places, placesOf } from "../protocol/phases/places.ts";
import { parameters } from "../protocol/phases/plan.ts";
import { DamagedLedgerError, Ledger } from "../protocol/privacy/ledger.ts";
import { type Bytes, compared, joined, pack, unpack } from "../protocol/wire.ts";
import { DamagedStoreError, LostLedgerError, type Store } from "../store/interface.ts";
import { dayOf, look, lookedAt, type OwnLook, ownLooks } from "./calendar.ts";
import type { Encoder } from "./encoder.ts";
import { expired } from "./expiry.ts";
import { defaultHierarchy } from "./labels.ts";
import type { Policy } from "./policy.ts";
import type { Voter } from "./voters.ts";

const LARGEST_ROW = 64 * 2 ** 20;
/** Most known phases that are sent to the server, and most begun sums that are remembered. */
const [KNOWN, BEGUN] = [8, 1024];
const NONE: Bytes = new Uint8Array();
const STATE = "state";
const RECORDING = "recording/";
const LEDGER = "ledger/";
/** Row with the number of entries: a ledger does not show that its newest are missing. */
const LENGTH = "ledger";

/** The phase that a phone takes part in, as agreed, and the weight of its part. */
const membership = map({ phase: bytes(16), index: whole(), parameters, weight: whole(0) });

/** Everything small that a phone keeps, in one row. */
const state = map({
  encoder: optional(encoderName, ""),
  /** The secret half of the phone's Ed25519 key, and the name by which its server knows it. */
  seed: optional(bytes(0, 32), NONE),
  name: optional(line(64), ""),
  member: nullable(membership),
  begun: optional(bytes(0, 16 * BEGUN), NONE),
  /** Labels of the newest phase, and their choices. */
  labels: optional(list(labelName, LARGEST_LABELS), []),
  choices,
  /** Whether a server has answered, the phases that are over, and whether an ending is unread. */
  met: optional(flag, false),
  known: optional(list(bytes(16), KNOWN), []),
  untold: optional(flag, false),
  /** Why the last request was refused, and the phase whose refusal was reported. */
  refusal: optional(line(1024), ""),
  told: optional(bytes(0, 16), NONE),
  look: nullable(look),
  undated: nullable(day),
  /** Number of the next recording, and a number of entries that the ledger has at least. */
  next: optional(whole(1), 1),
  entries: optional(whole(0), 0),
});
/** Everything small that a phone keeps. */
export type State = { -readonly [N in keyof Of<typeof state>]: Of<typeof state>[N] };

const recordingRow = map({
  embedding: matrix,
  day: nullable(day),
  choice: nullable(labelName),
  counted: optional(flag, false),
});
/** A recording: its embedding, day and choice, and whether a histogram has counted it. */
export type Recording = Of<typeof recordingRow>;

/** Results by which sound is named, each in a row of its type. */
export type Naming = Extract<Ending, { readonly centroids: unknown }>;
type Names = "result" | "labelled";

/** Settings of a phone, which are not stored. */
export interface Settings {
  readonly encoder: Encoder;
  readonly policy: Policy;
  /** Choices of the app's polls; null for those of the newest phase. */
  readonly hierarchy: LabelHierarchy | null;
  readonly keepDays: number | null;
  readonly voter: Voter | null;
  /** Clock of the seconds since 1970. */
  readonly clock: () => number;
}

/** Stored state of a phone, with its pending changes. */
export class Memory {
  readonly settings: Settings;
  readonly state: State;
  readonly #store: Store;
  #before: Bytes;
  readonly #changes = new Map<string, Bytes | null>();
  #recordings: Map<number, Recording> | null = null;
  #ledger: Ledger | null = null;
  #renews = false;
  #ownLook: OwnLook | undefined;

  private constructor(store: Store, settings: Settings, saved: State) {
    this.#store = store;
    this.settings = settings;
    this.state = saved;
    this.#before = encode(state, saved);
    this.#ownLook = ownLooks.get(store.name);
  }

  /** Open a store's memory; that of a new store is empty. */
  static async open(store: Store, settings: Settings): Promise<Memory> {
    const saved = (await store.read(STATE)).get(STATE);
    return new Memory(store, settings, read("state", state, saved ?? Uint8Array.of(0x80)));
  }

  /**
   * Make all changes durable in one transaction, before anything that depends on them is sent.
   *
   * Forgotten recordings cannot be read from the disk afterwards.
   */
  async commit(): Promise<void> {
    const after = encode(state, this.state);
    if (compared(after, this.#before) !== 0) this.#changes.set(STATE, after);
    if (this.#changes.size) await this.#store.commit(this.#changes, this.#renews);
    this.#changes.clear();
    if (this.#ownLook) ownLooks.set(this.#store.name, this.#ownLook);
    this.#before = after;
    this.#renews = false;
  }

  /** Return a row of the store, with the changes made here; null if there is none. */
  async get(name: string): Promise<Bytes | null> {
    const changed = this.#changes.get(name);
    if (changed !== undefined) return changed;
    return (await this.#store.read(name)).get(name) ?? null;
  }

  /** Change a row; null removes it. */
  put(name: string, content: Bytes | null): void {
    this.#changes.set(name, content);
  }

  // -------------------------------------------------------------------------------- recordings

  /** Return all recordings by their numbers, oldest first. */
  async recordings(): Promise<ReadonlyMap<number, Recording>> {
    if (this.#recordings === null) {
      const rows = [...(await this.#store.read(RECORDING))];
      this.#recordings = new Map(
        rows.map(([name, content]) => [numberIn(name), read(name, recordingRow, content)]),
      );
    }
    return this.#recordings;
  }

  /** Keep a recording, and return its number, which is never used again. */
  keep(embedding: Float32Array, on: string): number {
    const number = this.state.next++;
    this.change(number, {
      embedding: matrixOf(embedding),
      day: on,
      choice: null,
      counted: false,
    });
    return number;
  }

  /** Replace a recording. */
  change(number: number, recording: Recording): void {
    this.#recordings?.set(number, recording);
    this.put(rowName(RECORDING, number), encode(recordingRow, recording));
  }

  /** Return one recording. Throws `InvalidInputError` if there is none of this number. */
  async recording(number: number): Promise<Recording> {
    const name = rowName(RECORDING, number);
    const content = await this.get(name);
    if (content === null) throw new InvalidInputError(`there is no recording ${number}`);
    return read(name, recordingRow, content);
  }

  /** Forget recordings for good: nothing on the disk can be read as one of them afterwards. */
  forget(numbers: Iterable<number>): void {
    for (const number of numbers) {
      this.#recordings?.delete(number);
      this.put(rowName(RECORDING, number), null);
      this.#renews = true;
    }
  }

  /** Whether the stored embeddings are of another encoder: they are not comparable. */
  get isOfAnotherEncoder(): boolean {
    return this.state.encoder !== this.settings.encoder.name;
  }

  /** Forget expired recordings, and all that another encoder made. */
  async expire(): Promise<void> {
    const { encoder, keepDays } = this.settings;
    if (this.isOfAnotherEncoder) {
      if (this.state.encoder) {
        this.forget((await this.recordings()).keys());
        this.leavePhase();
        for (const name of ["result", "labelled"]) this.put(name, null);
      }
      this.state.encoder = encoder.name;
    }
    // Updated daily, also while a phone takes part in nothing because its budget is spent.
    this.today();
    if (keepDays === null) return;
    const kept = [...(await this.recordings())];
    const made = kept.map(([number, each]) => [number, each.day] as const);
    const { numbers, since } = expired(made, this.state.undated, keepDays, this.day);
    this.forget(numbers);
    this.state.undated = since;
  }

  /** The present day in UTC, by the phone's clock. */
  get day(): string {
    return dayOf(this.settings.clock());
  }

  /** Return the projected recordings, oldest first. */
  async points(dimensions: number): Promise<Rows> {
    const all = [...(await this.recordings()).values()];
    const values = new Float32Array(all.length * dimensions);
    all.forEach(({ embedding }, at) => {
      const own = Float32Array.from(row(rowsOf(embedding), 0));
      values.set(this.settings.encoder.project(own, dimensions), at * dimensions);
    });
    return { rows: all.length, columns: dimensions, values };
  }

  // ------------------------------------------------------------------------------------ labels

  /** Choices that a poll offers now: the app's, those of the newest phase, or the default. */
  get hierarchy(): LabelHierarchy {
    return this.settings.hierarchy ?? this.agreed;
  }

  /** Classes and choices of the newest phase; before the first, those of polls. */
  get agreed(): LabelHierarchy {
    const { labels, choices: stated } = this.state;
    if (!labels.length) return this.usual;
    if (!stated.length) return LabelHierarchy.flat(labels);
    return new LabelHierarchy(labels.map((label, at) => [label, stated[at] ?? []]));
  }

  /** Choices of polls before the first phase. */
  get usual(): LabelHierarchy {
    return this.settings.hierarchy ?? defaultHierarchy();
  }

  /** Return each choice's class in the newest phase; null if it has none. */
  classesOf(given: readonly (string | null)[]): readonly (string | null)[] {
    return classesOf(given, this.agreed, this.usual);
  }

  // ------------------------------------------------------------------------------------ places

  /** Keep a result that names sound; labelled samples belong to the result before them. */
  keepNames(result: Naming): void {
    this.put(result.type === "labelled" ? "labelled" : "result", encode(task, result));
    if (result.type !== "labelled") this.put("labelled", null);
  }

  /** Return a result that names sound; null if there is none. */
  async names(name: Names): Promise<Naming | null> {
    const saved = await this.get(name);
    return saved && (read(name, task, saved) as Naming);
  }

  /**
   * Return the places that name sound; null before the first result.
   *
   * Named samples precede the result's centroids, if geometry and dimensions agree.
   */
  async places(): Promise<Places | null> {
    const [result, labelled] = [await this.names("result"), await this.names("labelled")];
    const [only, samples] = [result ?? labelled, labelled && placesOf(labelled)];
    if (only === null) return null;
    const found = placesOf(only);
    const { columns } = found.points;
    const compares =
      result && samples?.geometry === found.geometry && samples.points.columns === columns;
    if (!samples || !compares) return found;
    const named = samples.names.flatMap((name, at) => (name === null ? [] : [at]));
    const rows = named.length + found.points.rows;
    const values = new Float32Array(rows * columns);
    named.forEach((at, to) => values.set(row(samples.points, at), to * columns));
    values.set(found.points.values, named.length * columns);
    return {
      ...found,
      points: { rows, columns, values },
      names: [...named.map((at) => samples.names[at]!), ...found.names],
    };
  }

  // ------------------------------------------------------------------------------------ ledger

  /** Return the ledger; throws `LostLedgerError` if it is damaged or incomplete. */
  async ledger(): Promise<Ledger> {
    if (this.#ledger) return this.#ledger;
    // In one read, since another page may add an entry between two.
    const rows = await this.#store.read(LENGTH);
    const said = rows.get(LENGTH);
    const length = said === undefined ? 0 : read(LENGTH, whole(0), said);
    const entries = [...rows].filter(([name]) => name !== LENGTH).map(([, entry]) => entry);
    const lost = "Without its ledger this phone releases nothing";
    if (entries.length !== length || length < this.state.entries) {
      const needed = Math.max(length, this.state.entries);
      throw new LostLedgerError(`${entries.length} of ${needed} ledger entries. ${lost}`);
    }
    try {
      return (this.#ledger = await Ledger.open(entries));
    } catch (error) {
      if (!(error instanceof DamagedLedgerError)) throw error;
      throw new LostLedgerError(`${error.message}. ${lost}`);
    }
  }

  /** Store encoded entries that the ledger has appended. */
  book(entries: readonly Bytes[]): void {
    for (const entry of entries) this.put(rowName(LEDGER, ++this.state.entries), entry);
    this.put(LENGTH, pack(this.state.entries));
  }

  /** Return the day in UTC on which budgets are charged; see `calendar`. */
  today(): string {
    const uptime = performance.now() / 1000;
    const last = this.state.entries ? this.state.look : null;
    const { counted } = (this.state.look = lookedAt(
      last,
      this.settings.clock(),
      uptime,
      this.#ownLook,
    ));
    this.#ownLook = { counted, uptime };
    return dayOf(counted);
  }

  // ------------------------------------------------------------------------------------- phases

  /** Note that a sum was begun; refuse one that was begun before. */
  begin(sum: Bytes): void {
    const { begun } = this.state;
    for (let at = 0; at < begun.length; at += sum.length) {
      if (compared(begun.subarray(at, at + sum.length), sum) === 0) {
        throw new RefusedError("a sum begins only once; this one has begun", "repeated");
      }
    }
    this.state.begun = joined(begun, sum).slice(-BEGUN * sum.length);
  }

  /** Note that a phase is over; return whether that is news. */
  end(ending: Ending): boolean {
    const { known, met } = this.state;
    if (known.some((each) => compared(each, ending.phase) === 0)) return false;
    this.state.known = [ending.phase, ...known].slice(0, KNOWN);
    // A result that is the first message is older than this phone.
    this.state.untold = met || !("centroids" in ending);
    this.put("ending", this.state.untold ? encode(task, ending) : null);
    return true;
  }

  /** Forget the name and key by which a server knows this phone; the ledger stays. */
  leave(): void {
    Object.assign(this.state, { seed: NONE, name: "" });
    this.leavePhase();
    this.#renews = true;
  }

  /** Forget the phase under way; the ledger stays. */
  leavePhase(): void {
    this.state.member = null;
    this.put("answered", null);
  }
}

function rowName(prefix: string, number: number): string {
  return prefix + String(number).padStart(10, "0");
}

function numberIn(name: string): number {
  return Number(name.slice(name.indexOf("/") + 1));
}

function matrixOf(embedding: Float32Array): Of<typeof matrix> {
  const data = new Uint8Array(4 * embedding.length);
  const view = new DataView(data.buffer);
  embedding.forEach((value, at) => view.setFloat32(4 * at, value, true));
  return { rows: 1, columns: embedding.length, data };
}

/** Read a row; throws `DamagedStoreError` for one that this version would not have written. */
function read<T>(name: string, field: Field<T>, content: Bytes): T {
  try {
    return field.read(unpack(content, LARGEST_ROW));
  } catch (error) {
    if (!(error instanceof EarshotError)) throw error;
    throw new DamagedStoreError(`row '${name}' is not what this version writes: ${error.message}`);
  }
}
