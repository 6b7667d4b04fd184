/** Seconds that proofs of the length of vectors take, one after the other. */

import { provedInput } from "../../client/web/protocol/secure_sum/proofs.ts";
import type { Bytes } from "../../client/web/protocol/wire.ts";

/** Seconds of the processor in Node; in a browser, which tells nobody of these, those of a clock. */
function now(): number {
  if (typeof process === "undefined") return performance.now() / 1000;
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

export function seconds(length: number, times: number): readonly number[] {
  const values = Array.from({ length }, (_, at) => (at % 120) - 60);
  const drawn = (size: number): Bytes => crypto.getRandomValues(new Uint8Array(size));
  return Array.from({ length: times }, () => {
    const before = now();
    provedInput({ proof: "norm" }, length, drawn(32), values, drawn(16), drawn(128));
    return now() - before;
  });
}
