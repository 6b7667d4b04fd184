/**
 * Polynomials over Field128, given by their values at the powers of a root of unity, whose order
 * is a power of two: the draft's Lagrange basis (draft-irtf-cfrg-vdaf-20, section 6.1.3).
 */

import { element, type Elements, MODULUS, power, powers } from "./field.ts";

const LOG_ORDER = 66n;
/** A root of unity of order 2^66. */
const GENERATOR = power(7n, MODULUS >> LOG_ORDER);

/**
 * Return the function that gives polynomials' values at the odd powers of the root of twice this
 * order, from those at the even powers.
 */
export function between(order: number): (values: Elements) => Elements {
  const root = power(GENERATOR, 2n ** LOG_ORDER / BigInt(2 * order));
  const inverse = power(BigInt(order), MODULUS - 2n);
  const shifts = powers(root, order).map((each) => element(each * inverse));
  const roots = powers(element(root * root), order);
  return (values) => {
    // The values of the values are `order` times the coefficients, in another order.
    const turned = evaluated(values, roots);
    const shifted = shifts.map((shift, at) => (turned.at(-at)! * shift) % MODULUS);
    return evaluated(shifted, roots).map(element);
  };
}

/**
 * Return the values of a polynomial at the powers of a root from its coefficients (Cooley and Tukey
 * 1965), each of them plus a few times p.
 */
function evaluated(coefficients: Elements, roots: Elements): Elements {
  if (coefficients.length === 1) return coefficients;
  const isEven = (_: bigint, at: number): boolean => at % 2 === 0;
  const squares = roots.filter(isEven);
  const even = evaluated(coefficients.filter(isEven), squares);
  const odd = evaluated(
    coefficients.filter((_, at) => at % 2 === 1),
    squares,
  ).map((each, at) => (each * roots[at]!) % MODULUS);
  return [
    ...even.map((each, at) => each + odd[at]!),
    ...even.map((each, at) => each - odd[at]!),
  ];
}
