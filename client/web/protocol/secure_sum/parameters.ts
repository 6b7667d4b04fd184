/** Parameters of a sum by two operators, and the width of its words. */

import { canonical } from "../canonical.ts";
import { checkWhole, demand } from "../checks.ts";
import { large, list, map, nullable, type Of, real, tagged, whole } from "../fields.ts";
import { LARGEST_LENGTH } from "../privacy/mechanisms.ts";
import { bitLength, checkNoise, noiseOfOperators, reach } from "../privacy/sum_noise.ts";
import { compared } from "../wire.ts";

const LARGEST_PHONES = 10 ** 8;
const LARGEST_RANK = 8;
/** Most entries of an input that is proved. */
const LARGEST_PROVED = 2 ** 20;

/** Parameters that phones and both operators agree on; `proof` is what inputs prove. */
export const sumParameters = map({
  phones: whole(),
  shape: list(whole(), 2 ** 16),
  bound: large,
  noise: noiseOfOperators,
  least: whole(),
  window: real(),
  proof: nullable(
    tagged("proof", {
      counts: map({ width: whole(), total: whole(), block: whole() }),
      norm: map({}),
    }),
  ),
});

export type SumParameters = Of<typeof sumParameters>;

/** Return the number of entries of a vector, ℓ. */
export function lengthOf({ shape }: SumParameters): number {
  return shape.reduce((length, size) => length * size, 1);
}

/**
 * Return the width w of a word, 64 bits at most: signed, it holds n inputs and both operators'
 * noise.
 *
 * Throws `InvalidParametersError` if they exceed a word.
 */
export function widthOf(parameters: SumParameters): number {
  const { phones, bound, noise } = parameters;
  const bits = bitLength(BigInt(phones) * bound + reach(noise, lengthOf(parameters)));
  demand(
    bits <= 63,
    "phones · bound and the noise do not fit 64 bits: fewer phones, or less noise",
  );
  return bits + 1;
}

/**
 * Throw `InvalidParametersError` for parameters that no sum may have. The numbers of a proof are
 * checked where it is made (`shapeOf` of `prio3/shapes`).
 */
export function checkSum(parameters: SumParameters): void {
  const { phones, shape, bound, noise, least, window, proof } = parameters;
  checkWhole("phones", phones, 3, LARGEST_PHONES);
  checkWhole("the number of dimensions", shape.length, 0, LARGEST_RANK);
  for (const size of shape) checkWhole("a dimension of shape", size, 1, LARGEST_LENGTH);
  checkWhole("length", lengthOf(parameters), 1, proof ? LARGEST_PROVED : LARGEST_LENGTH);
  demand(bound >= 1n && bound <= 2n ** 62n, `bound=${bound}: must be from 1 to 2^62`);
  demand(window > 0 && Number.isFinite(window), `window=${window}: must be above 0`);
  checkWhole("least", least, 2, phones);
  checkNoise(noise);
  widthOf(parameters);
}

/** Return whether two sums have the same parameters. */
export function isSameSum(one: SumParameters, other: SumParameters): boolean {
  return compared(canonical(sumParameters, one), canonical(sumParameters, other)) === 0;
}
