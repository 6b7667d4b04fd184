/** Validators of numbers: each says in one sentence what was wrong and what would be accepted. */

import { InvalidParametersError } from "./errors.ts";

/** Throw `InvalidParametersError` unless a condition holds; write it so that it fails for NaN. */
export function demand(holds: boolean, message: string): void {
  if (!holds) throw new InvalidParametersError(message);
}

/** Refuse anything but a whole number from `least` to `most`. */
export function checkWhole(name: string, value: number, least: number, most: number): void {
  demand(
    Number.isInteger(value) && value >= least && value <= most,
    `${name}=${value}: must be a whole number, from ${least} to ${most}`,
  );
}

/** Refuse anything but a number from `least` to `most`. */
export function checkBetween(name: string, value: number, least: number, most: number): void {
  const holds = typeof value === "number" && value >= least && value <= most;
  demand(holds, `${name}=${value}: must be a number, from ${least} to ${most}`);
}

/** Refuse a noise multiplier far below or above any use. */
export function checkMultiplier(name: string, value: number): void {
  checkBetween(name, value, 1e-9, 1e9);
}

/** Refuse a probability that is impossible or certain, such as a δ. */
export function checkProbability(name: string, value: number): void {
  demand(value > 0 && value < 1, `${name}=${value}: must be above 0 and below 1`);
}
