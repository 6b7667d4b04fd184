/** A server of one phone in memory, spoken to by `fetch`, which a test may break at any point. */

import { encode } from "../../client/web/protocol/fields.ts";
import { askTask, enrol, enrolled, refuse } from "../../client/web/protocol/messages.ts";
import { RULES } from "../../client/web/protocol/rules.ts";
import { type Bytes, hex, pack, Real, unpack } from "../../client/web/protocol/wire.ts";

const MESSAGEPACK = { "Content-Type": "application/msgpack" };

export function problem(status: number, kind: string, more: object = {}, headers = {}): Response {
  const body = { type: `urn:earshot:problem:${kind}`, title: kind, status, ...more };
  return new Response(JSON.stringify(body), {
    status,
    headers: { "Content-Type": "application/problem+json", ...headers },
  });
}

/** A task that asks for nothing. */
export const WAIT = pack(
  new Map<string, string | Real>([
    ["type", "wait"],
    ["seconds", new Real(5)],
  ]),
);

export class Server {
  /** Tasks, one after the other; the next is shown once the one before it is answered. */
  readonly tasks: Bytes[];
  readonly answers: string[] = [];
  readonly refusals: string[] = [];
  readonly requests: string[] = [];
  /** Phases that the phone named as known at its last request. */
  known: readonly string[] = [];
  key: string | null = null;
  /** Whether the server asks for everything twice. */
  lingers = false;
  #isAnswered = false;
  /** What is done before a request is served, and before its response leaves. */
  before: (path: string) => void | Promise<void> = () => {};
  after: (path: string) => void | Promise<void> = () => {};

  constructor(...tasks: readonly Bytes[]) {
    this.tasks = [...tasks];
  }

  readonly fetch: typeof fetch = async (address, init) => {
    const path = new URL(String(address)).pathname;
    await this.before(path);
    this.requests.push(path);
    const response = this.#served(path, new Uint8Array(init!.body as Bytes));
    await this.after(path);
    return response;
  };

  #served(path: string, body: Bytes): Response {
    const read = unpack(body, 2 ** 26);
    switch (path) {
      case "/v1/phones": {
        const key = hex(enrol.read(read).public_key);
        if (this.key !== null && this.key !== key) return problem(403, "invitation-used-up");
        this.key = key;
        return new Response(encode(enrolled, { phone: "phone-1" }), { headers: MESSAGEPACK });
      }
      case "/v1/task": {
        this.known = askTask.read(read).known.map(hex);
        return new Response(this.tasks[0] ?? WAIT, { headers: MESSAGEPACK });
      }
      case "/v1/answer": {
        const answer = hex(body);
        const isAgain = this.answers.at(-1) === answer;
        if (!isAgain && !this.tasks.length) return problem(409, "unexpected");
        if (this.lingers && !isAgain && this.#isAnswered) return problem(409, "repeated");
        if (!isAgain) this.answers.push(answer);
        // One that lingers asks the same once more, and takes nothing but the same answer.
        if (this.lingers ? isAgain && this.#isAnswered : !isAgain) this.tasks.shift();
        this.#isAnswered = this.lingers && !isAgain;
        return new Response(null, { status: 204 });
      }
      case "/v1/refusal": {
        const said = refuse.read(read);
        if (!RULES.some((rule) => rule === said.rule)) return problem(400, "malformed");
        this.refusals.push(`${hex(said.phase)} ${said.rule}`);
        return new Response(null, { status: 204 });
      }
      case "/v1/leave":
        if (this.key === null) return problem(401, "signature");
        this.key = null;
        return new Response(null, { status: 204 });
      default:
        return problem(404, "unknown-path");
    }
  }
}
