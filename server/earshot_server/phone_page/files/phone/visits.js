import { MalformedMessageError, RefusedError, RemoteError, RepeatedMessageError, UnexpectedMessageError, } from "../protocol/errors.js";
import { isEnding } from "../protocol/messages.js";
import { compared } from "../protocol/wire.js";
import { InvitationRefusedError, UnavailableError } from "../transport/http.js";
import { answered, shortfall } from "./phone.js";
const LONGEST_PAUSE = 3600;
const LONGEST_REFUSAL = 1024;
export function hasFailed({ event }) {
    return event === "too late" || event === "trouble";
}
export async function visited(work, failures) {
    let found;
    try {
        found = await work();
    }
    catch (error) {
        if (!(error instanceof RemoteError) || error instanceof InvitationRefusedError)
            throw error;
        const seconds = error instanceof UnavailableError ? error.seconds : 0;
        found = { event: "trouble", detail: error.message, seconds };
    }
    const pause = hasFailed(found) ? Math.min(2 ** Math.min(failures, 12), LONGEST_PAUSE) : 0;
    return { ...found, seconds: Math.max(found.seconds, pause) };
}
export async function exchanged(line, phone, open) {
    const memory = await open();
    const given = await line.task(phone, memory.state.known);
    let [body, isNews, remark] = [null, false, ""];
    try {
        body = await answered(memory, given);
        if (isEnding(given))
            isNews = memory.end(given);
        memory.state.met = true;
        if (body || isNews)
            memory.state.refusal = "";
        if ("parameters" in given && given.parameters)
            remark = await shortfall(memory);
    }
    catch (error) {
        if (!(error instanceof RemoteError))
            throw error;
        return refused(line, phone, await open(), given, error);
    }
    await memory.commit();
    if (body)
        return sent(line, phone, body, remark && `; this phone ${remark}`);
    if (given.type === "wait") {
        const seconds = Math.min(Math.max(given.seconds, 1), LONGEST_PAUSE);
        return { event: "waiting", detail: "nothing to do now", seconds };
    }
    if (isNews)
        return { event: "phase over", detail: given.type, seconds: 0 };
    throw new UnexpectedMessageError("the server reports the end of a phase a second time");
}
async function sent(line, phone, body, remark) {
    try {
        await line.send(phone, body);
    }
    catch (error) {
        const isLate = error instanceof UnexpectedMessageError ||
            error instanceof RepeatedMessageError ||
            error instanceof MalformedMessageError;
        if (!isLate)
            throw error;
        return { event: "too late", detail: error.message, seconds: 0 };
    }
    return { event: "answered", detail: `report${remark}`, seconds: 0 };
}
async function refused(line, phone, memory, given, error) {
    if (isEnding(given))
        memory.end(given);
    memory.state.met = true;
    if (!(error instanceof RefusedError)) {
        await memory.commit();
        throw error;
    }
    memory.state.refusal = [...error.message].slice(0, LONGEST_REFUSAL).join("");
    await memory.commit();
    const phase = ("phase" in given ? given.phase : null) ?? memory.state.member?.phase;
    const isTold = !phase || compared(phase, memory.state.told) === 0;
    if (!isTold && memory.settings.policy.tellRefusals) {
        try {
            await line.refuse(phone, phase, error.rule);
            memory.state.told = phase;
            await memory.commit();
        }
        catch (deaf) {
            if (!(deaf instanceof RemoteError))
                throw deaf;
        }
    }
    return { event: "refused", detail: error.message, seconds: LONGEST_PAUSE };
}
