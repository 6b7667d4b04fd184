import { UnexpectedMessageError } from "../errors.js";
import { tagged } from "../fields.js";
import { expenses, unspent } from "../privacy/mechanisms.js";
import { checkSum } from "../secure_sum/parameters.js";
import { checkDiscovery, discoveryParameters, discoveryParts } from "./discovery.js";
import { checkLabelling, labellingParameters, labellingParts } from "./labelling.js";
import { leastSurvivors } from "./parameters.js";
import { checkStatistics, statisticsParameters, statisticsParts } from "./statistics.js";
export const parameters = tagged("type", {
    discovery: discoveryParameters,
    labelling: labellingParameters,
    statistics: statisticsParameters,
});
export function planOf(given, weight = weightsOf(given)[0]) {
    switch (given.type) {
        case "discovery":
            return discoveryParts(given);
        case "labelling":
            return labellingParts(given, weight);
        case "statistics":
            return statisticsParts(given);
    }
}
export function partOf(plan, task) {
    const part = plan.find((each) => each.task === task.type && each.repetition === (task.repetition ?? 0));
    if (part)
        return part;
    throw new UnexpectedMessageError(`${task.type} in a phase that has no such part: its parts are ` +
        plan.map((each) => each.name).join(", "));
}
export function weightsOf(given) {
    if (given.type !== "labelling")
        return [1];
    return Array.from({ length: given.largest_weight + 1 }, (_, at) => given.largest_weight - at);
}
export function expensesOf(given, weight) {
    const spent = weight ? expenses : unspent;
    return planOf(given, weight).flatMap(({ name, mechanism }) => spent(name, mechanism));
}
export function checkParameters(given) {
    switch (given.type) {
        case "discovery":
            return checkDiscovery(given);
        case "labelling":
            return checkLabelling(given);
        case "statistics":
            return checkStatistics(given);
    }
}
export function sumOf(given, part) {
    const { mechanism } = planOf(given).find((each) => each.name === part.name);
    const sum = {
        phones: given.phones,
        shape: part.shape,
        bound: BigInt(mechanism.bound),
        noise: mechanism.noise,
        least: Math.max(2, leastSurvivors(given)),
        window: given.step_seconds,
        ones: null,
    };
    checkSum(sum);
    return sum;
}
export function readsOf(given) {
    switch (given.type) {
        case "discovery":
            return { encoder: given.encoder, dimensions: given.start.dimensions };
        case "labelling":
            return { encoder: given.encoder, dimensions: given.samples.columns };
        case "statistics":
            return given.places === null
                ? null
                : { encoder: given.places.encoder, dimensions: given.places.centroids.columns };
    }
}
