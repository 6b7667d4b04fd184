/**
 * Functions asked by Python's tests: a request a line, and an answer a line.
 *
 * A request is `[name, …arguments]`, in JSON; bytes are hexadecimal digits. An answer is
 * `{"is": …}`, or `{"error": class, "rule": …}` where the phone refuses.
 */

import { createInterface } from "node:readline";

import { EarshotError, RefusedError } from "../../client/web/protocol/errors.ts";

export async function answering(
  calls: Readonly<Record<string, (...given: any[]) => unknown>>,
): Promise<void> {
  for await (const line of createInterface({ input: process.stdin })) {
    let answered: unknown;
    try {
      const [name, ...given] = JSON.parse(line);
      answered = { is: await calls[name]!(...given) };
    } catch (error) {
      // Anything but a refusal is a defect, and is told as one.
      const known = error instanceof EarshotError;
      const rule = error instanceof RefusedError ? error.rule : null;
      answered = { error: known ? error.name : String((error as Error).stack), rule };
    }
    process.stdout.write(`${JSON.stringify(answered)}\n`);
  }
}
