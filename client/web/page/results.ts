/** Summaries of endings: what stands clear of the noise, and how much may be noise. */

import type { Ending } from "../index.ts";
import { LEVEL, placesOf } from "../protocol/phases/places.ts";
import { hex } from "../protocol/wire.ts";

/** An ending as the page shows it. */
export interface Summary {
  /** The phase, in hexadecimal. */
  readonly phase: string;
  readonly type: Ending["type"];
  /** Names that stand clear of the noise, and for contacts their number. */
  readonly clear: readonly (readonly [string, number | null])[];
  /** Names, or unnamed places or samples, that may be noise. */
  readonly doubtful: number;
  /** Reason of a failure. */
  readonly reason: string | null;
}

/** Summarize an ending. */
export function summaryOf(ending: Ending): Summary {
  const [phase, type] = [hex(ending.phase), ending.type];
  if (ending.type === "failed") {
    return { phase, type, clear: [], doubtful: 0, reason: ending.reason };
  }
  if (ending.type === "statistics") {
    const { label_names: names, labelled, named } = ending;
    // Where the server left out a p-value, the count may be noise.
    const chances = [ending.labelled_p_values, ending.named_p_values];
    const clear = names.flatMap((name, at) =>
      chances.some((each) => (each[at] ?? 1) <= LEVEL)
        ? [[name, Math.round(labelled[at]! + named[at]!)] as const]
        : [],
    );
    return { phase, type, clear, doubtful: names.length - clear.length, reason: null };
  }
  const names = placesOf(ending).names;
  const found = names.filter((name) => name !== null);
  const clear = [...new Set(found)].map((name) => [name, null] as const);
  return { phase, type, clear, doubtful: names.length - found.length, reason: null };
}
