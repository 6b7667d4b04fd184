/** A phone's line to a server that never ends a response, asked by Python's tests. */

import { signingKey } from "../../client/web/protocol/signatures.ts";
import { SigningClock } from "../../client/web/transport/clock.ts";
import { HttpTransport } from "../../client/web/transport/http.ts";
import { answering } from "./line.ts";

/** A minute of the line's patience takes so many times less. */
const HASTE = 120;
const { timeout } = AbortSignal;
AbortSignal.timeout = (milliseconds) => timeout.call(AbortSignal, milliseconds / HASTE);

await answering({
  /** Ask for a task, and return what comes of it, and how often the line has paused. */
  async task(server: string) {
    const key = await signingKey(new Uint8Array(32).fill(7));
    let pauses = 0;
    const pause = async (): Promise<void> => void pauses++;
    const clock = new SigningClock(() => 1.8e9);
    try {
      await new HttpTransport(server, key, clock, undefined, pause).task("p", []);
    } catch (error) {
      return [(error as Error).name, (error as Error).message, pauses];
    }
    return null;
  },
});
