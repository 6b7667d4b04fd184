/** Parameters that phones and server agree on before a phase, whatever its kind. */

import { checkWhole, demand } from "../checks.ts";
import { LabelHierarchy, LARGEST_CHOICES, LARGEST_NAME } from "../environments.ts";
import { InvalidInputError, InvalidParametersError } from "../errors.ts";
import { bytes, line, list, map, type Of, oneOf, optional, real, whole } from "../fields.ts";
import { release } from "../privacy/accounting.ts";
import { type Bytes, compared } from "../wire.ts";

export const LARGEST_CROWD = 10 ** 8;
export const LARGEST_LABELS = 256;
const DIGEST_BYTES = 32;
const NONE: Bytes = new Uint8Array();

export const labelName = line(LARGEST_NAME, 1);
export const encoderName = line(LARGEST_NAME);
export const releases = list(release, 4096);
/** Choices that a poll offers for each label; empty where polls offer the labels themselves. */
export const choices = optional(list(list(labelName, LARGEST_CHOICES), LARGEST_LABELS), []);
export type Choices = Of<typeof choices>;

/** Fields that every kind of phase states about its phones. */
export const COMMON = {
  phones: whole(),
  labels: list(labelName, 2 ** 16),
  dropout: real(),
  corrupted: real(),
  step_seconds: optional(real(), 86_400),
  noise_crowd: optional(whole(), 10_000),
  hierarchy: optional(bytes(0, DIGEST_BYTES), NONE),
  summation: optional(oneOf("bell", "two-operators", "two-operators-unproved"), "bell"),
} as const;

const common = map(COMMON);
export type Common = Of<typeof common>;

/** Return the number of honest phones that stay, ⌈(1 − ρ − γ) n⌉. */
export function honestSurvivors({ phones, dropout, corrupted }: Common): number {
  return Math.ceil(rounded((1 - dropout - corrupted) * phones));
}

/** Return the number of phones that must answer every step, n − ⌊ρn⌋. */
export function leastSurvivors({ phones, dropout }: Common): number {
  return phones - Math.floor(rounded(dropout * phones));
}

/** Throw `InvalidParametersError` for values that no phase of any kind may have. */
export function checkCommon(given: Common): void {
  checkWhole("phones", given.phones, 3, LARGEST_CROWD);
  checkWhole("the number of labels", given.labels.length, 1, LARGEST_LABELS);
  for (const name of ["dropout", "corrupted"] as const) {
    const value = given[name];
    demand(value >= 0 && value < 1, `${name}=${value}: must be at least 0 and below 1`);
  }
  const seconds = given.step_seconds;
  demand(seconds > 0 && Number.isFinite(seconds), `step_seconds=${seconds}: must be above 0`);
  checkWhole("noise_crowd", given.noise_crowd, 1, LARGEST_CROWD);
  const isOnce = new Set(given.labels).size === given.labels.length;
  demand(isOnce, "labels repeat: every equivalence class is named once");
  const size = given.hierarchy.length;
  demand(size === 0 || size === DIGEST_BYTES, `hierarchy: ${DIGEST_BYTES} bytes or none`);
}

/**
 * Return a phase's labels with their choices, as its first task states them.
 *
 * Throws `InvalidParametersError` if they do not match the parameters.
 */
export async function agreedHierarchy(given: Common, stated: Choices): Promise<LabelHierarchy> {
  let hierarchy: LabelHierarchy;
  try {
    demand(
      !stated.length || stated.length === given.labels.length,
      `choices for ${stated.length} of ${given.labels.length} labels`,
    );
    hierarchy = stated.length
      ? new LabelHierarchy(given.labels.map((label, at) => [label, stated[at]!]))
      : LabelHierarchy.flat(given.labels);
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error;
    throw new InvalidParametersError(`labels: ${error.message}`);
  }
  const digest = stated.length ? await hierarchy.digest() : NONE;
  demand(
    compared(digest, given.hierarchy) === 0,
    "the choices of the labels do not match the digest in the parameters",
  );
  return hierarchy;
}

/** Round to six decimals, so that 0.9 · 500 does not become 451. */
function rounded(value: number): number {
  return Number(value.toFixed(6));
}
