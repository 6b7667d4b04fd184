import { checkProbability, checkWhole, demand } from "../checks.js";
import { composedEpsilon } from "./composition.js";
import { NOTHING, UNITS } from "./events.js";
import { eventOf, gaussian, laplace } from "./sum_noise.js";
export const GRID = 2 ** 12;
export const LARGEST_LENGTH = 2 ** 24;
export function countSum(epsilon, contacts) {
    return {
        name: "ballot sum with discrete Laplace noise",
        noise: laplace(2 / epsilon),
        bound: contacts,
        distances: { recording: { l1: 2, l2: 2 }, phone: { l1: contacts, l2: contacts } },
        delta: 0,
        pure: { recording: epsilon, phone: (epsilon * contacts) / 2 },
    };
}
export function vectorSum(multiplier, length, delta, row) {
    checkWhole("length", length, 1, LARGEST_LENGTH);
    checkWhole("row", row, 1, length);
    checkProbability("delta", delta);
    const steps = multiplier * GRID;
    const rounded = Math.sqrt(length);
    const longest = GRID - rounded / 2;
    const recording = Math.max(GRID, longest + Math.sqrt(row), (2 / Math.sqrt(5)) * longest + rounded);
    return {
        name: "sum of bounded vectors with Skellam noise",
        noise: gaussian(steps * steps),
        bound: GRID,
        distances: {
            recording: { l1: rounded * recording, l2: recording },
            phone: { l1: rounded * GRID, l2: GRID },
        },
        delta,
        pure: null,
    };
}
export function voteSum(queries, weight, moved, deviation, delta) {
    checkProbability("delta", delta);
    demand(deviation > 0 && Number.isFinite(deviation), `deviation=${deviation}: must be above 0`);
    const many = Math.sqrt(queries);
    return {
        name: "sum of votes with Skellam noise",
        noise: gaussian(deviation * deviation),
        bound: weight,
        distances: {
            recording: { l1: queries * (weight * moved), l2: many * (weight * Math.sqrt(moved)) },
            phone: { l1: queries * weight, l2: many * weight },
        },
        delta,
        pure: null,
    };
}
export function expenses(step, mechanism) {
    return UNITS.map((unit) => {
        const { l1, l2 } = mechanism.distances[unit];
        const event = eventOf(mechanism.noise, l1, l2);
        const epsilon = mechanism.pure?.[unit] ?? composedEpsilon([event], mechanism.delta);
        return {
            release: { step, unit, epsilon, delta: mechanism.delta, mechanism: mechanism.name },
            event,
        };
    });
}
export function unspent(step, mechanism) {
    return UNITS.map((unit) => ({
        release: { step, unit, epsilon: 0, delta: 0, mechanism: mechanism.name },
        event: NOTHING,
    }));
}
