/**
 * A phone's line to its server over HTTP: signed requests, retried while network or server are
 * unavailable. Every request is idempotent, so one whose response was lost is sent again.
 */

import {
  MalformedMessageError,
  RemoteError,
  RepeatedMessageError,
  UnexpectedMessageError,
} from "../protocol/errors.ts";
import { encode, type Field } from "../protocol/fields.ts";
import {
  askTask,
  decodeTask,
  enrol,
  enrolled,
  leave,
  refuse,
  type Task,
} from "../protocol/messages.ts";
import type { Rule } from "../protocol/rules.ts";
import { sign, type SigningKey } from "../protocol/signatures.ts";
import { type Bytes, joined, unpack } from "../protocol/wire.ts";
import type { SigningClock } from "./clock.ts";

/** Milliseconds that one try may take, from its request to the end of its response. */
const DEADLINE = 60_000;
const TRIES = 5;
/**
 * Seconds: the first pause between tries, the longest, and the longest that a server may demand.
 */
const [FIRST_PAUSE, LONGEST_PAUSE, LONGEST_AWAY] = [0.5, 30, 3600];
const LARGEST_TASK = 64 * 2 ** 20;
const LARGEST_SMALL = 64 * 2 ** 10;
const LONGEST_TEXT = 300;
const MESSAGEPACK = "application/msgpack";
const PROBLEM = "application/problem+json";
const BUSY = [408, 429, 502, 503, 504];

/** A server that cannot be reached or is too busy; try again, after `seconds` if it said so. */
export class UnavailableError extends RemoteError {
  override name = "UnavailableError";
  readonly seconds: number;

  constructor(message: string, seconds = 0) {
    super(message);
    this.seconds = seconds;
  }
}

/** The server does not know this phone by this name and key. */
export class SignatureError extends RemoteError {
  override name = "SignatureError";
}

/** The server's clock differs from this phone's. */
export class StaleSignatureError extends SignatureError {
  override name = "StaleSignatureError";
  /** What the server's clock reads, in seconds since 1970; null if it did not say. */
  readonly now: number | null;

  constructor(message: string, now: number | null) {
    super(message);
    this.now = now;
  }
}

/** The server's refusal to admit a phone with this invitation; the message says why. */
export class InvitationRefusedError extends RemoteError {
  override name = "InvitationRefusedError";
}

/** The server's refusal for another reason, which the message states. */
export class ServerProblemError extends RemoteError {
  override name = "ServerProblemError";
}

const ERRORS: Readonly<Record<string, new (message: string) => RemoteError>> = {
  malformed: MalformedMessageError,
  "too-large": MalformedMessageError,
  signature: SignatureError,
  invitation: InvitationRefusedError,
  "invitation-used-up": InvitationRefusedError,
  repeated: RepeatedMessageError,
  unexpected: UnexpectedMessageError,
};

/** A line to a server; each call throws a `RemoteError` if the server refuses or is unavailable. */
export class HttpTransport {
  readonly #server: string;
  readonly #key: SigningKey;
  readonly #clock: SigningClock;
  readonly #fetch: typeof fetch;
  readonly #pause: (seconds: number) => Promise<void>;

  /** Take the server's address, the phone's key, and in tests another `fetch` and `pause`. */
  constructor(
    server: string,
    key: SigningKey,
    clock: SigningClock,
    request: typeof fetch = (...given) => fetch(...given),
    pause: (seconds: number) => Promise<void> = wait,
  ) {
    this.#server = server;
    this.#key = key;
    this.#clock = clock;
    this.#fetch = request;
    this.#pause = pause;
  }

  /** Register the phone's key with the server; return the name that it has there from now on. */
  async enrol(attestation: string): Promise<string> {
    const body = encode(enrol, { public_key: this.#key.publicKey, attestation });
    const content = await this.#call("new", "/v1/phones", body, LARGEST_SMALL);
    return read(enrolled, content).phone;
  }

  /** Request a task; `known` are the phases whose endings have arrived, newest first. */
  async task(phone: string, known: readonly Bytes[]): Promise<Task> {
    const body = encode(askTask, { known });
    return decodeTask(await this.#call(phone, "/v1/task", body, LARGEST_TASK));
  }

  /** Send an answer; return once the server has it. */
  async send(phone: string, answer: Bytes): Promise<void> {
    await this.#call(phone, "/v1/answer", answer, 0);
  }

  /** Report the rule by which this phone refuses a phase. */
  async refuse(phone: string, phase: Bytes, rule: Rule): Promise<void> {
    await this.#call(phone, "/v1/refusal", encode(refuse, { phase, rule }), 0);
  }

  /** Ask the server to forget this phone. */
  async leave(phone: string): Promise<void> {
    await this.#call(phone, "/v1/leave", encode(leave, {}), 0);
  }

  async #call(phone: string, path: string, body: Bytes, limit: number): Promise<Bytes> {
    try {
      return await this.#persist(phone, path, body, limit);
    } catch (error) {
      if (!(error instanceof StaleSignatureError) || error.now === null) throw error;
      this.#clock.correct(error.now);
      return this.#persist(phone, path, body, limit);
    }
  }

  /** Try again, after ever longer pauses, for as long as the server is unavailable. */
  async #persist(phone: string, path: string, body: Bytes, limit: number): Promise<Bytes> {
    for (let tried = 1; ; tried++) {
      try {
        return await this.#request(phone, path, body, limit);
      } catch (error) {
        const isAway = error instanceof UnavailableError && error.seconds <= LONGEST_PAUSE;
        if (!isAway || tried === TRIES) throw error;
        // Random, so that phones that lost the same server do not all return together.
        const longest = Math.min(FIRST_PAUSE * 2 ** tried, LONGEST_PAUSE);
        await this.#pause(Math.max(error.seconds, longest * (0.5 + Math.random() / 2)));
      }
    }
  }

  /** Return the content of the response, at most `limit` bytes; none if that is 0. */
  async #request(phone: string, path: string, body: Bytes, limit: number): Promise<Bytes> {
    const { created } = this.#clock;
    const signed = await sign(this.#key.privateKey, phone, created, path, MESSAGEPACK, body);
    let response: Response;
    let content: Bytes | null;
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
    } catch (error) {
      const why = cleaned(error instanceof Error ? error.message : "");
      throw new UnavailableError(`${this.#server} cannot be reached: ${why}`);
    }
    const media = (response.headers.get("Content-Type") ?? "").split(";")[0]!.trim().toLowerCase();
    if (response.status !== (limit ? 200 : 204)) throw errorOf(response, media, content);
    if (limit && media !== MESSAGEPACK) {
      throw new MalformedMessageError(`a response of type '${cleaned(media)}', not ${MESSAGEPACK}`);
    }
    if (content === null || content.length > limit) {
      throw new MalformedMessageError(`a response of more than ${limit} bytes`);
    }
    return content;
  }
}

/** Read a response of at most `limit` bytes; stop and return null if it has more. */
async function contentOf(response: Response, limit: number): Promise<Bytes | null> {
  const reader = response.body?.getReader();
  const parts: Uint8Array[] = [];
  for (let size = 0; reader; ) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    size += value.length;
    if (size > limit) {
      await reader.cancel();
      return null;
    }
  }
  return joined(...parts);
}

/** Return the error for an unsuccessful response. */
function errorOf(response: Response, media: string, content: Bytes | null): RemoteError {
  const { status } = response;
  let problem: Record<string, unknown> = {};
  if (media === PROBLEM && content) {
    try {
      const found: unknown = JSON.parse(new TextDecoder().decode(content));
      if (found && typeof found === "object") problem = found as typeof problem;
    } catch {
      // then only the status counts
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
  const Kind = Object.hasOwn(ERRORS, kind) ? ERRORS[kind]! : ServerProblemError;
  return new Kind(said);
}

/** Sanitize untrusted text for display on one short line. */
function cleaned(text: string): string {
  const seen = text.replace(/\s+/g, " ").replace(/[^\P{C} ]|[^\P{Z} ]/gu, "?");
  return [...seen].slice(0, LONGEST_TEXT).join("").trim();
}

function read<T>(field: Field<T>, content: Bytes): T {
  return field.read(unpack(content, LARGEST_SMALL));
}

/** Wait for some seconds. */
export function wait(seconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 1000 * seconds));
}
