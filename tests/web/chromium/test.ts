/** As much of `node:test` as our tests use, for a browser: a page maps that name to this file. */

interface Case {
  readonly name: string;
  readonly run: () => unknown;
}

const cases: Case[] = [];

export function test(name: string, run: () => unknown): void {
  cases.push({ name, run });
}

/** Run the tests of a file in order, and return what each that failed said. */
export async function outcomes(file: string): Promise<{ ran: number; failed: string[] }> {
  cases.length = 0;
  await import(file);
  const failed: string[] = [];
  for (const { name, run } of cases) {
    try {
      await run();
    } catch (error) {
      failed.push(`${name}: ${error instanceof Error ? error.stack : String(error)}`);
    }
  }
  return { ran: cases.length, failed };
}
