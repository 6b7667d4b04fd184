import { checkWhole, demand } from "../checks.js";
import { day, list, map, nullable, optional, real, whole } from "../fields.js";
import { countSum } from "../privacy/mechanisms.js";
import { checkCommon, COMMON, labelName, LARGEST_LABELS, releases } from "./parameters.js";
import { agreedPlaces, checkPlaces } from "./places.js";
const LARGEST_CONTACTS = 10_000;
const SMALLEST_EPSILON = 1e-9;
const LONGEST_WINDOW = 366 * 86_400_000;
export const statisticsParameters = map({
    ...COMMON,
    contacts: whole(),
    epsilon: real(),
    since: nullable(day),
    until: nullable(day),
    places: nullable(agreedPlaces),
});
export const statistics = {
    label_names: list(labelName, LARGEST_LABELS),
    contacts: list(whole(), LARGEST_LABELS),
    p_values: optional(list(real(0, 1), LARGEST_LABELS), []),
    since: nullable(day),
    until: nullable(day),
    privacy: releases,
};
export function statisticsParts({ labels, epsilon, contacts }) {
    const mechanism = countSum(epsilon, contacts);
    return [
        { name: "histogram", task: "count-contacts", repetition: 0, shape: [labels.length], mechanism },
    ];
}
export function checkStatistics(given) {
    checkCommon(given);
    checkWhole("contacts", given.contacts, 1, LARGEST_CONTACTS);
    const { epsilon, since, until } = given;
    demand(epsilon >= SMALLEST_EPSILON && Number.isFinite(epsilon), `epsilon=${epsilon}: must be at least ${SMALLEST_EPSILON}`);
    const length = since && until ? Date.parse(until) - Date.parse(since) : 0;
    demand((since === null && until === null) || (length > 0 && length <= LONGEST_WINDOW), `since=${since}, until=${until}: a window of 1 to 366 days is needed, or none`);
    if (given.places !== null)
        checkPlaces(given.places, given.labels.length);
}
export function isInWindow({ since, until }, on) {
    return since === null || until === null || (on !== null && since <= on && on < until);
}
