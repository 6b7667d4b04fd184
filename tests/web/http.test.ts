import assert from "node:assert/strict";
import { test } from "node:test";

import {
  MalformedMessageError,
  RemoteError,
  RepeatedMessageError,
  UnexpectedMessageError,
} from "../../client/web/protocol/errors.ts";
import { encode } from "../../client/web/protocol/fields.ts";
import { enrolled } from "../../client/web/protocol/messages.ts";
import { signatureBase, signingKey, verified } from "../../client/web/protocol/signatures.ts";
import type { Bytes } from "../../client/web/protocol/wire.ts";
import { SigningClock } from "../../client/web/transport/clock.ts";
import {
  HttpTransport,
  InvitationRefusedError,
  ServerProblemError,
  SignatureError,
  StaleSignatureError,
  UnavailableError,
} from "../../client/web/transport/http.ts";
import { problem, WAIT } from "./server.ts";

const SERVER = "https://earshot.example.org";
const NOW = 1.8e9;
const DONE = (): Response => new Response(null, { status: 204 });
const task = (body: BodyInit = WAIT, headers: object = {}): Response =>
  new Response(body, { headers: { "Content-Type": "application/msgpack", ...headers } });

interface Said {
  readonly path: string;
  readonly init: RequestInit;
  readonly fields: Headers;
}

/** A line whose server gives these responses, one after the other, the last one for ever. */
async function line(...responses: readonly (() => Response)[]) {
  const said: Said[] = [];
  const pauses: number[] = [];
  const left = [...responses];
  const key = await signingKey(new Uint8Array(32).fill(7));
  const answering: typeof fetch = async (address, init) => {
    const fields = new Headers(init!.headers);
    said.push({ path: String(address).slice(SERVER.length), init: init!, fields });
    return (left.length > 1 ? left.shift()! : left[0]!)();
  };
  const pause = async (seconds: number): Promise<void> => void pauses.push(seconds);
  const clock = new SigningClock(() => NOW);
  return { transport: new HttpTransport(SERVER, key, clock, answering, pause), said, pauses, key };
}

async function failure(response: () => Response, work: "task" | "send" = "task") {
  const { transport, said, pauses } = await line(response);
  try {
    await (work === "task" ? transport.task("p", []) : transport.send("p", WAIT));
  } catch (error) {
    return { error: error as RemoteError, said, pauses };
  }
  throw new Error("nothing was thrown");
}

test("requests are signed, and carry nothing of this browser", async () => {
  const { transport, said, key } = await line(DONE);
  await transport.send("phone-1", WAIT);
  const { path, init, fields } = said[0]!;
  assert.equal(path, "/v1/answer");
  assert.deepEqual(
    [init.method, init.redirect, init.credentials, init.cache, init.referrerPolicy],
    ["POST", "error", "omit", "no-store", "no-referrer"],
  );
  assert.ok(init.signal instanceof AbortSignal);
  const parameters = fields.get("Signature-Input")!.slice("earshot=".length);
  assert.match(parameters, /;created=1800000000;keyid="phone-1";alg="ed25519"$/);
  const base = signatureBase(
    path,
    fields.get("Content-Type")!,
    fields.get("Content-Digest")!,
    parameters,
  );
  const signature = Uint8Array.from(atob(fields.get("Signature")!.slice(9, -1)), (each) =>
    each.charCodeAt(0),
  );
  assert.ok(await verified(key.publicKey, signature, base));
});

test("a phone enrols as new, and learns its name", async () => {
  const body = encode(enrolled, { phone: "abc" });
  const { transport, said } = await line(() => task(body));
  assert.equal(await transport.enrol("code"), "abc");
  assert.match(said[0]!.fields.get("Signature-Input")!, /keyid="new"/);
});

test("a task is read, however its type is written", async () => {
  for (const kind of ["application/msgpack", "Application/MsgPack; q=1"]) {
    const { transport } = await line(() => task(WAIT, { "Content-Type": kind }));
    assert.equal((await transport.task("p", [])).type, "wait");
  }
});

test("a response that is something else is malformed, and is not asked for again", async () => {
  for (const response of [
    () => task(WAIT, { "Content-Type": "text/html" }),
    () => new Response(WAIT),
    () => task(WAIT.slice(1)),
    () => task(new Uint8Array()),
  ]) {
    const { error, said } = await failure(response);
    assert.ok(error instanceof MalformedMessageError, error.message);
    assert.equal(said.length, 1);
  }
  const { error } = await failure(() => task(), "send");
  assert.ok(error instanceof ServerProblemError); // 200 where nothing is to be said
});

/** A body of many megabytes, which counts those that were asked for. */
function endless(asked: { count: number }): ReadableStream<Uint8Array> {
  return new ReadableStream({
    pull(controller) {
      asked.count += 1;
      controller.enqueue(new Uint8Array(2 ** 16));
    },
  });
}

test("no more is read than a response may have", async () => {
  const asked = { count: 0 };
  const { transport } = await line(() => task(endless(asked)));
  await assert.rejects(transport.enrol("code"), MalformedMessageError);
  assert.ok(asked.count < 10, `${asked.count}`);
  asked.count = 0;
  const busy = { status: 500, headers: { "Content-Type": "application/problem+json" } };
  const { error } = await failure(() => new Response(endless(asked), busy));
  assert.ok(error instanceof ServerProblemError);
  assert.ok(asked.count < 10, `${asked.count}`);
});

test("a connection that breaks is tried again, five times in all", async () => {
  const broken = new ReadableStream({
    pull: (controller) => controller.error(new Error("reset")),
  });
  for (const response of [
    () => {
      throw new TypeError("fetch failed");
    },
    () => task(broken),
    ...[408, 429, 502, 503, 504].map((status) => () => problem(status, "busy")),
  ]) {
    const { error, said, pauses } = await failure(response);
    assert.ok(error instanceof UnavailableError, error.message);
    assert.equal(said.length, 5);
    pauses.forEach((pause, at) => assert.ok(pause >= 2 ** at / 2 && pause <= 2 ** at));
  }
  const { transport, said } = await line(() => problem(503, "busy"), task);
  assert.equal((await transport.task("p", [])).type, "wait");
  assert.deepEqual(said[0]!.init.body, said[1]!.init.body);
});

test("a server that asks for time gets it, an hour at most", async () => {
  for (const [after, least, tries] of [
    ["7", 7, 5],
    ["31", 31, 1],
    ["99999999", 3600, 1],
    ["-5", 0, 5],
    ["Thu, 26 Nov 2026 17:00:00 GMT", 0, 5],
  ] as const) {
    const { error, said, pauses } = await failure(() =>
      problem(429, "rate-limit", {}, { "Retry-After": after }),
    );
    assert.equal((error as UnavailableError).seconds, least);
    assert.equal(said.length, tries);
    assert.ok(pauses.every((pause) => pause >= least));
  }
});

test("a wrong clock is corrected, once", async () => {
  const stale = (): Response => problem(401, "stale-signature", { now: NOW + 5000 });
  const { transport, said } = await line(stale, task, task);
  await transport.task("p", []);
  await transport.task("p", []);
  const inputs = said.map(({ fields }) => fields.get("Signature-Input")!);
  const created = inputs.map((input) => /created=(\d+)/.exec(input)![1]);
  assert.deepEqual(created, ["1800000000", "1800005000", "1800005000"]);
  const { error, said: twice } = await failure(stale);
  assert.ok(error instanceof StaleSignatureError);
  assert.equal(twice.length, 2);
  for (const now of [undefined, "1", -1, 1e12, null, {}]) {
    const { error: other, said: once } = await failure(() =>
      problem(401, "stale-signature", { now }),
    );
    assert.ok(other instanceof StaleSignatureError);
    assert.equal(once.length, 1);
  }
});

test("problems become errors of their kinds", async () => {
  for (const [status, kind, wanted] of [
    [400, "malformed", MalformedMessageError],
    [413, "too-large", MalformedMessageError],
    [401, "signature", SignatureError],
    [403, "invitation", InvitationRefusedError],
    [403, "invitation-used-up", InvitationRefusedError],
    [409, "repeated", RepeatedMessageError],
    [409, "unexpected", UnexpectedMessageError],
    [500, "internal", ServerProblemError],
    [418, "constructor", ServerProblemError],
  ] as const) {
    const { error, said } = await failure(() => problem(status, kind));
    assert.equal(error.constructor, wanted, kind);
    assert.equal(said.length, 1, kind);
  }
});

test("problems that are none are told by their status, and others' text is cleaned", async () => {
  const PROBLEM = { "Content-Type": "application/problem+json" };
  for (const body of ["", "{", "null", "7", "[]", '{"title": 7}']) {
    const { error } = await failure(() => new Response(body, { status: 500, headers: PROBLEM }));
    assert.equal(error.message, "the server answered 500", body);
  }
  const { error: other } = await failure(() => new Response("<b>no</b>", { status: 500 }));
  assert.equal(other.message, "the server answered 500");
  const title = `a\nb\u202ec\u0007${"x".repeat(1000)}`;
  const { error } = await failure(() => problem(500, "internal", { title, detail: "d" }));
  assert.match(error.message, /^a b\?c\?x+$/);
  assert.equal(error.message.length, 300);
});

test("leaving and refusing say what they have to", async () => {
  const { transport, said } = await line(DONE);
  await transport.leave("p");
  await transport.refuse("p", new Uint8Array(16), "least_phones");
  assert.deepEqual(
    said.map(({ path }) => path),
    ["/v1/leave", "/v1/refusal"],
  );
  assert.deepEqual(new Uint8Array(said[0]!.init.body as Bytes), Uint8Array.of(0x80));
});
