import { MalformedMessageError, RemoteError, RepeatedMessageError, UnexpectedMessageError, } from "../protocol/errors.js";
import { encode } from "../protocol/fields.js";
import { askTask, decodeTask, enrol, enrolled, leave, refuse, } from "../protocol/messages.js";
import { sign } from "../protocol/signatures.js";
import { joined, unpack } from "../protocol/wire.js";
const DEADLINE = 60_000;
const TRIES = 5;
const [FIRST_PAUSE, LONGEST_PAUSE, LONGEST_AWAY] = [0.5, 30, 3600];
const LARGEST_TASK = 64 * 2 ** 20;
const LARGEST_SMALL = 64 * 2 ** 10;
const LONGEST_TEXT = 300;
const MESSAGEPACK = "application/msgpack";
const PROBLEM = "application/problem+json";
const BUSY = [408, 429, 502, 503, 504];
export class UnavailableError extends RemoteError {
    seconds;
    constructor(message, seconds = 0) {
        super(message);
        this.seconds = seconds;
    }
}
export class SignatureError extends RemoteError {
}
export class StaleSignatureError extends SignatureError {
    now;
    constructor(message, now) {
        super(message);
        this.now = now;
    }
}
export class InvitationRefusedError extends RemoteError {
}
export class ServerProblemError extends RemoteError {
}
const ERRORS = {
    malformed: MalformedMessageError,
    "too-large": MalformedMessageError,
    signature: SignatureError,
    invitation: InvitationRefusedError,
    "invitation-used-up": InvitationRefusedError,
    repeated: RepeatedMessageError,
    unexpected: UnexpectedMessageError,
};
export class HttpTransport {
    #server;
    #key;
    #clock;
    #fetch;
    #pause;
    constructor(server, key, clock, request = (...given) => fetch(...given), pause = wait) {
        this.#server = server;
        this.#key = key;
        this.#clock = clock;
        this.#fetch = request;
        this.#pause = pause;
    }
    async enrol(attestation) {
        const body = encode(enrol, { public_key: this.#key.publicKey, attestation });
        const content = await this.#call("new", "/v1/phones", body, LARGEST_SMALL);
        return read(enrolled, content).phone;
    }
    async task(phone, known) {
        const body = encode(askTask, { known });
        return decodeTask(await this.#call(phone, "/v1/task", body, LARGEST_TASK));
    }
    async send(phone, answer) {
        await this.#call(phone, "/v1/answer", answer, 0);
    }
    async refuse(phone, phase, rule) {
        await this.#call(phone, "/v1/refusal", encode(refuse, { phase, rule }), 0);
    }
    async leave(phone) {
        await this.#call(phone, "/v1/leave", encode(leave, {}), 0);
    }
    async #call(phone, path, body, limit) {
        try {
            return await this.#persist(phone, path, body, limit);
        }
        catch (error) {
            if (!(error instanceof StaleSignatureError) || error.now === null)
                throw error;
            this.#clock.correct(error.now);
            return this.#persist(phone, path, body, limit);
        }
    }
    async #persist(phone, path, body, limit) {
        for (let tried = 1;; tried++) {
            try {
                return await this.#request(phone, path, body, limit);
            }
            catch (error) {
                const isAway = error instanceof UnavailableError && error.seconds <= LONGEST_PAUSE;
                if (!isAway || tried === TRIES)
                    throw error;
                const longest = Math.min(FIRST_PAUSE * 2 ** tried, LONGEST_PAUSE);
                await this.#pause(Math.max(error.seconds, longest * (0.5 + Math.random() / 2)));
            }
        }
    }
    async #request(phone, path, body, limit) {
        const { created } = this.#clock;
        const signed = await sign(this.#key.privateKey, phone, created, path, MESSAGEPACK, body);
        let response;
        let content;
        try {
            response = await this.#fetch(this.#server + path, {
                method: "POST",
                headers: { ...signed, "Content-Type": MESSAGEPACK, Accept: `${MESSAGEPACK}, ${PROBLEM}` },
                body,
                redirect: "error",
                credentials: "omit",
                cache: "no-store",
                referrerPolicy: "no-referrer",
                signal: AbortSignal.timeout(DEADLINE),
            });
            content = await contentOf(response, response.status === 200 ? limit : LARGEST_SMALL);
        }
        catch (error) {
            const why = cleaned(error instanceof Error ? error.message : "");
            throw new UnavailableError(`${this.#server} cannot be reached: ${why}`);
        }
        const media = (response.headers.get("Content-Type") ?? "").split(";")[0].trim().toLowerCase();
        if (response.status !== (limit ? 200 : 204))
            throw errorOf(response, media, content);
        if (limit && media !== MESSAGEPACK) {
            throw new MalformedMessageError(`a response of type '${cleaned(media)}', not ${MESSAGEPACK}`);
        }
        if (content === null || content.length > limit) {
            throw new MalformedMessageError(`a response of more than ${limit} bytes`);
        }
        return content;
    }
}
async function contentOf(response, limit) {
    const reader = response.body?.getReader();
    const parts = [];
    for (let size = 0; reader;) {
        const { done, value } = await reader.read();
        if (done)
            break;
        parts.push(value);
        size += value.length;
        if (size > limit) {
            await reader.cancel();
            return null;
        }
    }
    return joined(...parts);
}
function errorOf(response, media, content) {
    const { status } = response;
    let problem = {};
    if (media === PROBLEM && content) {
        try {
            const found = JSON.parse(new TextDecoder().decode(content));
            if (found && typeof found === "object")
                problem = found;
        }
        catch {
        }
    }
    const told = [problem.title, problem.detail].filter((each) => typeof each === "string" && each);
    const said = cleaned(told.join(": ")) || `the server answered ${status}`;
    if (BUSY.includes(status)) {
        const after = response.headers.get("Retry-After") ?? "";
        const seconds = /^\d+$/.test(after) ? Math.min(Number(after), LONGEST_AWAY) : 0;
        return new UnavailableError(said, seconds);
    }
    const kind = String(problem.type).replace("urn:earshot:problem:", "");
    if (kind === "stale-signature") {
        const now = typeof problem.now === "number" ? problem.now : NaN;
        return new StaleSignatureError(said, now >= 0 && now < 1e12 ? now : null);
    }
    const Kind = Object.hasOwn(ERRORS, kind) ? ERRORS[kind] : ServerProblemError;
    return new Kind(said);
}
function cleaned(text) {
    const seen = text.replace(/\s+/g, " ").replace(/[^\P{C} ]|[^\P{Z} ]/gu, "?");
    return [...seen].slice(0, LONGEST_TEXT).join("").trim();
}
function read(field, content) {
    return field.read(unpack(content, LARGEST_SMALL));
}
function wait(seconds) {
    return new Promise((resolve) => setTimeout(resolve, 1000 * seconds));
}
