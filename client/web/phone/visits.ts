/** One exchange with the server: a task, its answer, and what follows from failures. */

import {
  MalformedMessageError,
  RefusedError,
  RemoteError,
  RepeatedMessageError,
  UnexpectedMessageError,
} from "../protocol/errors.ts";
import { isEnding, type Task } from "../protocol/messages.ts";
import { type Bytes, compared, hex } from "../protocol/wire.ts";
import { type HttpTransport, InvitationRefusedError, UnavailableError } from "../transport/http.ts";
import type { Memory } from "./memory.ts";
import { answered, shortfall } from "./phone.ts";

/** Longest pause between visits, in seconds; also the pause after a refusal. */
const LONGEST_PAUSE = 3600;
const LONGEST_REFUSAL = 1024;

/** Outcome of a visit, its explanation, and the seconds after which to visit again. */
export interface Visit {
  readonly event: "waiting" | "answered" | "too late" | "phase over" | "refused" | "trouble";
  readonly detail: string;
  readonly seconds: number;
}

/** Changes the phone's memory in one transaction, under its lock. */
export type Changed = <T>(work: (memory: Memory) => Promise<T>) => Promise<T>;

/** Return whether a visit failed, so that the next one should wait longer. */
export function hasFailed({ event }: Visit): boolean {
  return event === "too late" || event === "trouble";
}

/** Turn the other side's trouble into an outcome; `failures` visits before have failed in a row. */
export async function visited(work: () => Promise<Visit>, failures: number): Promise<Visit> {
  let found: Visit;
  try {
    found = await work();
  } catch (error) {
    if (!(error instanceof RemoteError) || error instanceof InvitationRefusedError) throw error;
    const seconds = error instanceof UnavailableError ? error.seconds : 0;
    found = { event: "trouble", detail: error.message, seconds };
  }
  const pause = hasFailed(found) ? Math.min(2 ** Math.min(failures, 12), LONGEST_PAUSE) : 0;
  return { ...found, seconds: Math.max(found.seconds, pause) };
}

/**
 * Request a task, do it and send the answer; `known` are the phases whose endings have arrived.
 *
 * Throws a `RemoteError` for the other side's trouble, unless it is a refusal.
 */
export async function exchanged(
  line: HttpTransport,
  phone: string,
  known: readonly Bytes[],
  changed: Changed,
): Promise<Visit> {
  const given = await line.task(phone, known);
  let [body, isNews, remark]: [Bytes | null, boolean, string] = [null, false, ""];
  let phase: Bytes | undefined;
  try {
    // Durable before anything is sent.
    await changed(async (memory) => {
      body = await answered(memory, given);
      if (isEnding(given)) {
        isNews = memory.end(given);
        if (!(await hadPart(memory, given.phase))) remark = "; this phone had no part in it";
      }
      phase = memory.state.member?.phase;
      memory.state.met = true;
      if (body || isNews) memory.state.refusal = "";
      if ("parameters" in given && given.parameters) remark = await shortfall(memory);
    });
  } catch (error) {
    if (!(error instanceof RemoteError)) throw error;
    return refused(line, phone, changed, given, error);
  }
  if (body) return sent(line, phone, body, remark && `; this phone ${remark}`);
  if (given.type === "wait") {
    const seconds = Math.min(Math.max(given.seconds, 1), LONGEST_PAUSE);
    // The server tells no phone that it has joined a gathering.
    const where = phase ? `in phase ${hex(phase)}` : "no phase has begun for this phone";
    return { event: "waiting", detail: `nothing to do now; ${where}`, seconds };
  }
  if (isNews) return { event: "phase over", detail: given.type + remark, seconds: 0 };
  throw new UnexpectedMessageError("the server reports the end of a phase a second time");
}

/** Return whether the phone released anything in a phase; a lost ledger does not tell. */
async function hadPart(memory: Memory, phase: Bytes): Promise<boolean> {
  const { entries } = await memory.ledger().catch(() => ({ entries: null }));
  return entries?.some((entry) => compared(entry.phase, phase) === 0) ?? true;
}

async function sent(
  line: HttpTransport,
  phone: string,
  body: Bytes,
  remark: string,
): Promise<Visit> {
  try {
    await line.send(phone, body);
  } catch (error) {
    const isLate =
      error instanceof UnexpectedMessageError ||
      error instanceof RepeatedMessageError ||
      error instanceof MalformedMessageError;
    if (!isLate) throw error;
    return { event: "too late", detail: error.message, seconds: 0 };
  }
  return { event: "answered", detail: `report${remark}`, seconds: 0 };
}

/** Note why a task was refused, and report the rule to the server once a phase. */
async function refused(
  line: HttpTransport,
  phone: string,
  changed: Changed,
  given: Task,
  error: RemoteError,
): Promise<Visit> {
  const untold = await changed(async (memory) => {
    const { state, settings } = memory;
    // An ending that is inconsistent now will not become valid.
    if (isEnding(given)) memory.end(given);
    state.met = true;
    if (!(error instanceof RefusedError)) return null;
    state.refusal = [...error.message].slice(0, LONGEST_REFUSAL).join("");
    // A task that names no phase belongs to the one that the phone is in.
    const phase = ("phase" in given ? given.phase : null) ?? state.member?.phase;
    const isTold = !phase || compared(phase, state.told) === 0;
    return isTold || !settings.policy.tellRefusals ? null : phase;
  });
  if (!(error instanceof RefusedError)) throw error;
  if (untold) {
    try {
      await line.refuse(phone, untold, error.rule);
      await changed(async ({ state }) => {
        state.told = untold;
      });
    } catch (deaf) {
      // Nothing is lost: the phone reports it at its next refusal.
      if (!(deaf instanceof RemoteError)) throw deaf;
    }
  }
  return { event: "refused", detail: error.message, seconds: LONGEST_PAUSE };
}
