import { InvalidInputError, LocalError, WrongStateError } from "../protocol/errors.js";
import { row, rowsOf } from "../protocol/matrix.js";
import { decodeTask, isEnding } from "../protocol/messages.js";
import { standing } from "../protocol/phases/acceptance.js";
import { namesAt } from "../protocol/phases/places.js";
import { signingKey } from "../protocol/signatures.js";
import { hex } from "../protocol/wire.js";
import { alone } from "../store/locks.js";
import { SealedRows } from "../store/sealed_rows.js";
import { SigningClock } from "../transport/clock.js";
import { HttpTransport, SignatureError, StaleSignatureError } from "../transport/http.js";
import { KEEP_DAYS } from "./expiry.js";
import { checkChoice } from "./labels.js";
import { checkServer } from "./link.js";
import { Memory } from "./memory.js";
import { policyOf } from "./policy.js";
import { exchanged, hasFailed, visited } from "./visits.js";
export class NotEnrolledError extends LocalError {
}
export function openPhone(options) {
    return new Client(options);
}
export class Client {
    #options;
    #settings;
    #store;
    #clock;
    #expiredOn = "";
    #failures = 0;
    constructor(options) {
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
    async hear(sound) {
        const embedding = await this.#embedded(sound);
        const number = await this.#changed(async (memory) => memory.keep(embedding, memory.day));
        if (number === 1)
            navigator.storage?.persist?.().catch(() => { });
        return number;
    }
    async isPersistent() {
        return (await navigator.storage?.persisted?.()) ?? false;
    }
    label(recording, choice) {
        return this.#changed(async (memory) => {
            checkChoice(choice, memory.usual, memory.hierarchy);
            memory.change(recording, { ...(await memory.recording(recording)), choice });
        });
    }
    async scene(sound) {
        const places = await this.#places(await this.#memory());
        if (places === null) {
            throw new WrongStateError("no published places yet: take part in a phase first");
        }
        const { columns } = places.points;
        const values = this.#settings.encoder.project(await this.#embedded(sound), columns);
        return namesAt(places, { rows: 1, columns, values })[0];
    }
    async poll() {
        return (await this.#memory()).hierarchy;
    }
    async recordings() {
        const memory = await this.#memory();
        const places = await this.#places(memory);
        const named = places && namesAt(places, await memory.points(places.points.columns));
        return [...(await memory.recordings())].map(([number, { day, choice, counted }], at) => {
            return { number, day, choice, counted, place: named?.[at] ?? null };
        });
    }
    forget(recording) {
        return this.#changed(async (memory) => {
            if (recording === undefined)
                return memory.forget([...(await memory.recordings()).keys()]);
            await memory.recording(recording);
            memory.forget([recording]);
        });
    }
    async ledger() {
        return (await (await this.#memory()).ledger()).export();
    }
    async standing() {
        const memory = await this.#memory();
        const ledger = await memory.ledger();
        return standing(this.#settings.policy.limits, ledger, memory.today());
    }
    async refusal() {
        return (await this.#memory()).state.refusal || null;
    }
    async ending() {
        const memory = await this.#memory();
        const saved = memory.state.untold ? await memory.get("ending") : null;
        const read = saved && decodeTask(saved);
        return read && isEnding(read) ? read : null;
    }
    told() {
        return this.#changed(async (memory) => {
            memory.state.untold = false;
            memory.put("ending", null);
        });
    }
    async export() {
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
    erase() {
        return alone(this.#store.name, () => this.#store.erase());
    }
    close() {
        this.#store.close();
    }
    enrol(invitation) {
        return alone(this.#store.name, async () => {
            await this.#enrolled(invitation);
        });
    }
    visit() {
        return alone(this.#store.name, async () => {
            const found = await visited(async () => {
                const [line, phone] = await this.#enrolled();
                return exchanged(line, phone, () => this.#memory());
            }, this.#failures);
            this.#failures = hasFailed(found) ? this.#failures + 1 : 0;
            return found;
        });
    }
    leave() {
        return alone(this.#store.name, async () => {
            const memory = await this.#memory();
            const { seed, name } = memory.state;
            if (!name)
                throw new NotEnrolledError("this phone is enrolled nowhere");
            try {
                await (await this.#line(seed)).leave(name);
            }
            catch (error) {
                const isStale = error instanceof StaleSignatureError;
                if (isStale || !(error instanceof SignatureError))
                    throw error;
            }
            Object.assign(memory.state, { seed: new Uint8Array(), name: "" });
            memory.leavePhase();
            await memory.commit(true);
        });
    }
    async #enrolled(invitation = this.#options.invitation) {
        const memory = await this.#expired();
        const { state } = memory;
        if (!state.name && invitation === undefined) {
            throw new NotEnrolledError("this phone is not enrolled yet: it needs an invitation");
        }
        if (!state.seed.length) {
            state.seed = crypto.getRandomValues(new Uint8Array(32));
            await memory.commit();
        }
        const line = await this.#line(state.seed);
        if (!state.name) {
            state.name = await line.enrol(invitation);
            await memory.commit();
        }
        return [line, state.name];
    }
    async #line(seed) {
        const { server, fetch, pause } = this.#options;
        return new HttpTransport(server, await signingKey(seed), this.#clock, fetch, pause);
    }
    #memory() {
        return Memory.open(this.#store, this.#settings);
    }
    async #expired() {
        const memory = await this.#memory();
        const { day } = memory;
        if (day !== this.#expiredOn || memory.isOfAnotherEncoder) {
            await memory.expire();
            await memory.commit();
            this.#expiredOn = day;
        }
        return memory;
    }
    async #places(memory) {
        return memory.isOfAnotherEncoder ? null : memory.places();
    }
    #changed(work) {
        return alone(this.#store.name, async () => {
            const memory = await this.#expired();
            const done = await work(memory);
            await memory.commit();
            return done;
        });
    }
    async #embedded(sound) {
        const { encoder } = this.#settings;
        const { oneSecond } = await import("./features.js");
        return encoder.embed(oneSecond(sound, encoder.rate));
    }
}
function plain(value) {
    if (value instanceof Uint8Array)
        return hex(value);
    if (Array.isArray(value))
        return value.map(plain);
    if (value === null || typeof value !== "object")
        return value;
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, plain(each)]));
}
