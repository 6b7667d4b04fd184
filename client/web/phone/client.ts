/**
 * An app's single entry point: a phone, its store, its server and the visits between them. All
 * state is in the store, so a page may be closed at any moment.
 */

import { InvalidInputError, LocalError, WrongStateError } from "../protocol/errors.ts";
import type { LabelHierarchy } from "../protocol/environments.ts";
import { row, rowsOf } from "../protocol/matrix.ts";
import { decodeTask, type Ending, isEnding } from "../protocol/messages.ts";
import { type Limits, standing } from "../protocol/phases/acceptance.ts";
import { namesAt, type Places } from "../protocol/phases/places.ts";
import type { Standing } from "../protocol/privacy/budgets.ts";
import { newSeed, signingKey } from "../protocol/signatures.ts";
import { type Bytes, compared, hex } from "../protocol/wire.ts";
import type { Store } from "../store/interface.ts";
import { alone, inTurn } from "../store/locks.ts";
import { SealedRows } from "../store/sealed_rows.ts";
import { SigningClock } from "../transport/clock.ts";
import { HttpTransport, SignatureError, StaleSignatureError, wait } from "../transport/http.ts";
import { checkBrowser } from "./browser.ts";
import type { Encoder } from "./encoder.ts";
import { KEEP_DAYS } from "./expiry.ts";
import type { Sound } from "./features.ts";
import { checkChoice } from "./labels.ts";
import { checkServer } from "./link.ts";
import { Memory, type Settings, type State } from "./memory.ts";
import { type OperatorKey, policyOf } from "./policy.ts";
import { exchanged, hasFailed, type Visit, visited } from "./visits.ts";
import type { Voter } from "./voters.ts";

/** A phone that is not enrolled and has no invitation to enrol with. */
export class NotEnrolledError extends LocalError {
  override name = "NotEnrolledError";
}

/** A recording, as its user sees it. */
export interface Heard {
  readonly number: number;
  /** Day in UTC. */
  readonly day: string | null;
  readonly choice: string | null;
  /** Whether a histogram of contacts that left this phone has counted it. */
  readonly counted: boolean;
  /** Name of the nearest prototype that was published; null where there is none near enough. */
  readonly place: string | null;
}

/** Options of a phone. */
export interface Options {
  /** Address of the server: https, a host and an optional port. */
  readonly server: string;
  /** Keys of two organizations: of the server as the leader of sums, and of their helper. */
  readonly leader: OperatorKey;
  readonly helper: OperatorKey;
  readonly encoder: Encoder;
  /** Code with which a new phone enrols at its first visit, instead of by `enrol`. */
  readonly invitation?: string;
  /** 32 secret bytes from the platform's key store, under which the store is sealed. */
  readonly key?: Bytes;
  /** Limits that differ from the default. */
  readonly policy?: Partial<Limits>;
  /** Whether the server is sent the name of the rule that refuses a phase; by default it is. */
  readonly tellRefusals?: boolean;
  /** Choices of polls; by default those of the newest phase, or of everyday life. */
  readonly hierarchy?: LabelHierarchy;
  /** Days after which recordings are forgotten, 28 by default; null keeps them. */
  readonly keepDays?: number | null;
  /** Model that votes in labelling phases; by default the labelled recordings do. */
  readonly voter?: Voter;
  /** Store to use instead of the browser's. */
  readonly store?: Store;
  /** For tests: `fetch`, the pause between tries, and a clock of the seconds since 1970. */
  readonly fetch?: typeof fetch;
  readonly pause?: (seconds: number) => Promise<void>;
  readonly clock?: () => number;
}

/**
 * Open the phone of this page's origin; nothing is sent yet.
 *
 * Throws `InvalidInputError` for an invalid server, key, operator or `keepDays`, and
 * `InvalidParametersError` for an invalid limit.
 */
export function openPhone(options: Options): Client {
  return new Client(options);
}

/**
 * A phone of one server. Calls that change something take turns across tabs, and throw `BusyError`
 * after waiting too long; only calls that reach the server wait for the network.
 */
export class Client {
  readonly #options: Options;
  readonly #settings: Settings;
  readonly #store: Store;
  readonly #clock: SigningClock;
  #isChecked = false;
  #expiredOn = "";
  #failures = 0;

  /** Check the options; see `openPhone`. */
  constructor(options: Options) {
    const { server, leader, helper, policy, tellRefusals, keepDays = KEEP_DAYS } = options;
    checkServer(server);
    if (keepDays !== null && !(keepDays >= 1)) {
      throw new InvalidInputError(`keepDays=${keepDays}: must be at least one day, or null`);
    }
    const clock = options.clock ?? (() => Date.now() / 1000);
    this.#options = options;
    this.#settings = {
      encoder: options.encoder,
      policy: policyOf(leader, helper, policy, tellRefusals),
      hierarchy: options.hierarchy ?? null,
      keepDays,
      voter: options.voter ?? null,
      clock,
    };
    this.#store = options.store ?? new SealedRows(options.key);
    this.#clock = new SigningClock(clock);
  }

  /**
   * Keep the embedding of one second of sound, and the day; the sound is not kept.
   *
   * Returns: the recording's number.
   * Throws `UnusableRecordingError`: the sound is too short, silent, clipped or not finite.
   */
  async hear(sound: Sound): Promise<number> {
    const embedding = await this.#embedded(sound);
    const number = await this.#changed(async (memory) => memory.keep(embedding, memory.day));
    // Not awaited, since some browsers ask their users. Workers cannot request it.
    if (number === 1) globalThis.navigator?.storage?.persist?.().catch(() => {});
    return number;
  }

  /**
   * Return whether the browser has promised to keep the store when the disk is full. A page
   * requests that with its first recording; for a phone in a worker, the page has to request it
   * itself.
   */
  async isPersistent(): Promise<boolean> {
    return (await globalThis.navigator?.storage?.persisted?.()) ?? false;
  }

  /**
   * Attach the answer of a poll to a recording.
   *
   * Throws `UnknownLabelError`: no poll offers the choice. `InvalidInputError`: there is no such
   * recording.
   */
  label(recording: number, choice: string): Promise<void> {
    return this.#changed(async (memory) => {
      checkChoice(choice, memory.usual, memory.hierarchy);
      memory.change(recording, { ...(await memory.recording(recording)), choice });
    });
  }

  /**
   * Name a second of sound by the nearest prototype that was published; null is unknown.
   *
   * Throws `WrongStateError`: no result has arrived yet.
   */
  async scene(sound: Sound): Promise<string | null> {
    const places = await this.#places(await this.#memory());
    if (places === null) {
      throw new WrongStateError("no published places yet: take part in a phase first");
    }
    const { columns } = places.points;
    const values = this.#settings.encoder.project(await this.#embedded(sound), columns);
    return namesAt(places, { rows: 1, columns, values })[0]!;
  }

  /** Return the classes that a poll offers now, with the choices of each. */
  async poll(): Promise<LabelHierarchy> {
    return (await this.#memory()).hierarchy;
  }

  /** Return the recordings, oldest first. */
  async recordings(): Promise<readonly Heard[]> {
    const memory = await this.#memory();
    const places = await this.#places(memory);
    const named = places && namesAt(places, await memory.points(places.points.columns));
    return [...(await memory.recordings())].map(([number, { day, choice, counted }], at) => {
      return { number, day, choice, counted, place: named?.[at] ?? null };
    });
  }

  /**
   * Erase a recording and its choice; without a number, all of them. The ledger stays, and so does
   * what has left the phone. Throws `InvalidInputError`: there is no such recording.
   */
  forget(recording?: number): Promise<void> {
    return this.#changed(async (memory) => {
      if (recording === undefined) return memory.forget([...(await memory.recordings()).keys()]);
      await memory.recording(recording);
      memory.forget([recording]);
    });
  }

  /** Return every release of this phone, oldest first. Throws `LostLedgerError`. */
  async ledger(): Promise<readonly Readonly<Record<string, unknown>>[]> {
    return (await (await this.#memory()).ledger()).export();
  }

  /** Return spent ε and its limit in each unit, for 366 days and for the phone's life. */
  async standing(): Promise<readonly Standing[]> {
    const memory = await this.#memory();
    const ledger = await memory.ledger();
    return standing(this.#settings.policy.limits, ledger, memory.today());
  }

  /** Return why this phone refused the last request; null once it has taken part again. */
  async refusal(): Promise<string | null> {
    return (await this.#memory()).state.refusal || null;
  }

  /** Return the newest ending that is not marked as shown by `told`; null if there is none. */
  async ending(): Promise<Ending | null> {
    const memory = await this.#memory();
    const saved = memory.state.untold ? await memory.get("ending") : null;
    const read = saved && decodeTask(saved);
    return read && isEnding(read) ? read : null;
  }

  /** Mark the ending as shown to the user. */
  told(): Promise<void> {
    return this.#changed(async (memory) => {
      memory.state.untold = false;
      memory.put("ending", null);
    });
  }

  /** Return everything that the phone keeps, except its keys, in types that JSON has. */
  async export(): Promise<Readonly<Record<string, unknown>>> {
    const memory = await this.#memory();
    const { encoder, name, member, labels, choices, known, refusal } = memory.state;
    const recordings = [...(await memory.recordings())];
    return {
      server: this.#options.server,
      name,
      encoder,
      phase: member && plain(member),
      labels,
      choices,
      over: known.map(hex),
      refusal,
      recordings: recordings.map(([number, { embedding, ...about }]) => ({
        number,
        ...about,
        embedding: [...row(rowsOf(embedding), 0)],
      })),
      result: plain(await memory.names("result")),
      labelled: plain(await memory.names("labelled")),
      ledger: (await memory.ledger()).export(),
    };
  }

  /**
   * Erase everything, including the ledger and both keys. The server still knows the phone: call
   * `leave` first. A phone that enrols again is a new one with new budgets. A visit under way
   * writes nothing more, and throws `NotEnrolledError` unless it is done.
   */
  erase(): Promise<void> {
    return inTurn(this.#store.name, () => this.#store.erase());
  }

  /** Close the store; the next call opens it again. */
  close(): void {
    this.#store.close();
  }

  /**
   * Enrol with an invitation's code, which is not stored; do nothing if the phone is enrolled.
   *
   * Throws `InvitationRefusedError`: the server does not admit the phone. `UnavailableError`: the
   * server cannot be reached now.
   */
  enrol(invitation: string): Promise<void> {
    return inTurn(this.#visits, async () => {
      await this.#enrolled(invitation);
    });
  }

  /**
   * Request a task, do it and send the answer; enrol first if needed.
   *
   * Call again after the outcome's `seconds`, immediately if they are 0. Throws `NotEnrolledError`:
   * the phone is new and has no invitation. `InvitationRefusedError`: the server does not admit it.
   * `LocalError`: something is wrong on this phone; other trouble is in the outcome.
   */
  visit(): Promise<Visit> {
    return alone(this.#visits, async () => {
      const found = await visited(async () => {
        const [line, { seed, name, known }] = await this.#enrolled();
        return exchanged(line, name, known, (work) => this.#changed(work, seed));
      }, this.#failures);
      this.#failures = hasFailed(found) ? this.#failures + 1 : 0;
      return found;
    });
  }

  /**
   * Un-enrol: the server deletes its data about this phone, and the phone its name and key.
   * Recordings, results and the ledger stay.
   *
   * Throws `NotEnrolledError`: no server knows the phone. `UnavailableError`: the server cannot be
   * reached now; nothing has changed here.
   */
  leave(): Promise<void> {
    return inTurn(this.#visits, async () => {
      const { seed, name } = (await this.#memory()).state;
      if (!name) throw new NotEnrolledError("this phone is not enrolled");
      try {
        await (await this.#line(seed)).leave(name);
      } catch (error) {
        // A server that does not know the phone holds nothing of it: a response may be lost.
        const isStale = error instanceof StaleSignatureError;
        if (isStale || !(error instanceof SignatureError)) throw error;
      }
      await this.#changed(async (memory) => memory.leave(), seed);
    });
  }

  /** Name of the lock that visits hold. */
  get #visits(): string {
    return `${this.#store.name} visit`;
  }

  /** Return the line to the server, and the state of a phone that is enrolled. */
  async #enrolled(
    invitation = this.#options.invitation,
  ): Promise<readonly [HttpTransport, Readonly<State>]> {
    // Stored before the server receives the key, to which it always gives the same name.
    const state = await this.#changed(async ({ state }) => {
      if (!state.name && invitation === undefined) {
        throw new NotEnrolledError("this phone is not enrolled yet: it needs an invitation");
      }
      if (!state.seed.length) state.seed = newSeed();
      return state;
    });
    const line = await this.#line(state.seed);
    if (!state.name) {
      const name = await line.enrol(invitation!);
      await this.#changed(async (memory) => {
        memory.state.name = state.name = name;
      }, state.seed);
    }
    return [line, state];
  }

  async #line(seed: Bytes): Promise<HttpTransport> {
    const { server, fetch, pause = wait } = this.#options;
    const patient = async (seconds: number): Promise<void> => {
      await pause(seconds);
      // A phone that was erased meanwhile sends nothing again.
      await this.#memory(seed);
    };
    return new HttpTransport(server, await signingKey(seed), this.#clock, fetch, patient);
  }

  /** Open the memory; given a seed, throw `NotEnrolledError` unless it is still the phone's. */
  async #memory(seed?: Bytes): Promise<Memory> {
    const memory = await Memory.open(this.#store, this.#settings);
    if (seed && compared(seed, memory.state.seed) !== 0) {
      throw new NotEnrolledError("this phone was erased, or has left its server, meanwhile");
    }
    return memory;
  }

  async #places(memory: Memory): Promise<Places | null> {
    return memory.isOfAnotherEncoder ? null : memory.places();
  }

  /** Change the memory under its lock; given a seed, only if it is still the phone's. */
  #changed<T>(work: (memory: Memory) => Promise<T>, seed?: Bytes): Promise<T> {
    return inTurn(this.#store.name, async () => {
      if (!this.#isChecked) await checkBrowser();
      this.#isChecked = true;
      const memory = await this.#memory(seed);
      const { day } = memory;
      // Removes expired recordings first, once a day.
      if (day !== this.#expiredOn || memory.isOfAnotherEncoder) {
        await memory.expire();
        await memory.commit();
        this.#expiredOn = day;
      }
      const done = await work(memory);
      await memory.commit();
      return done;
    });
  }

  async #embedded(sound: Sound): Promise<Float32Array> {
    const { encoder } = this.#settings;
    // Pages that only visit their server do not load this.
    const { oneSecond } = await import("./features.ts");
    return encoder.embed(oneSecond(sound, encoder.rate));
  }
}

/** Convert a value to JSON's types, with bytes as hexadecimal digits. */
function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return hex(value);
  if (Array.isArray(value)) return value.map(plain);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, plain(each)]));
}
