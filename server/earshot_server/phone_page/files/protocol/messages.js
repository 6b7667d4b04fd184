import { canonical } from "./canonical.js";
import { InvalidInputError, MalformedMessageError, RefusedError } from "./errors.js";
import { bytes, encode, line, list, map, nullable, oneOf, optional, real, tagged, whole, } from "./fields.js";
import { matrix } from "./matrix.js";
import { discovered, discoveryParameters, kindsOfCells, repetition } from "./phases/discovery.js";
import { labelled, labellingParameters, proposed } from "./phases/labelling.js";
import { choices, encoderName, labelName, LARGEST_LABELS, releases } from "./phases/parameters.js";
import { geometryName } from "./phases/places.js";
import { parameters } from "./phases/plan.js";
import { statistics, statisticsParameters } from "./phases/statistics.js";
import { RULES } from "./rules.js";
import { sendReport } from "./secure_sum/offer.js";
import { phoneReport } from "./secure_sum/report.js";
import { joined, unpack } from "./wire.js";
const LARGEST_TASK_BYTES = 64 * 2 ** 20;
const LARGEST_CENTROIDS = 4096;
const identifier = bytes(16);
const unspoken = {
    read(value) {
        const given = value instanceof Map ? value.get("phase") : null;
        return { phase: given instanceof Uint8Array && given.length === 16 ? given : null };
    },
    write() {
        throw new InvalidInputError("this phone writes no message that it does not speak");
    },
};
const advertise = tagged("type", { "send-report": sendReport, "advertise-keys": unspoken });
const phase = identifier;
const votes = list(whole(), LARGEST_CENTROIDS);
const chances = optional(list(real(0, 1), LARGEST_CENTROIDS), []);
export const task = tagged("type", {
    "count-contacts": map({
        phase,
        parameters: tagged("type", { statistics: statisticsParameters }),
        choices,
        advertise,
    }),
    "sum-cells": map({
        phase,
        repetition,
        parameters: nullable(tagged("type", { discovery: discoveryParameters })),
        choices,
        centroids: nullable(matrix),
        advertise,
    }),
    "sum-labels": map({
        phase,
        parameters: nullable(tagged("type", { discovery: discoveryParameters })),
        choices,
        centroids: nullable(matrix),
        kinds: kindsOfCells,
        advertise,
    }),
    "label-samples": map({
        phase,
        parameters: tagged("type", { labelling: labellingParameters }),
        choices,
        advertise,
    }),
    "check-labels": map({ phase, proposed, advertise }),
    wait: map({ seconds: real(0, 1e9) }),
    statistics: map({ phase, ...statistics }),
    discovered: map({ phase, ...discovered }),
    labelled: map({ phase, ...labelled }),
    result: map({
        phase,
        geometry: geometryName,
        centroids: matrix,
        labels: list(whole(-1, LARGEST_LABELS - 1), LARGEST_CENTROIDS),
        label_names: list(labelName, LARGEST_LABELS),
        centroid_votes: votes,
        label_votes: list(list(whole(), LARGEST_LABELS), LARGEST_CENTROIDS),
        centroid_p_values: chances,
        name_p_values: chances,
        encoder: optional(encoderName, ""),
        privacy: releases,
    }),
    failed: map({ phase, reason: line(1024) }),
    cluster: unspoken,
    "global-centroids": unspoken,
    "top-centroids": unspoken,
    "share-keys": unspoken,
    "mask-input": unspoken,
    unmask: unspoken,
});
export function isEnding(given) {
    return "privacy" in given || given.type === "failed";
}
export const answer = tagged("type", { report: phoneReport });
export const enrol = map({ public_key: bytes(32), attestation: line(16_384) });
export const enrolled = map({ phone: keyId() });
export const askTask = map({ known: optional(list(identifier, 8), []) });
export const refuse = map({ phase, rule: oneOf(...RULES) });
export const leave = map({});
export function decodeTask(data, limit = LARGEST_TASK_BYTES) {
    return task.read(unpack(data, limit));
}
export function encodeReport(report) {
    return encode(answer, { type: "report", ...report });
}
export function refusalOf(given) {
    switch (given.type) {
        case "cluster":
        case "global-centroids":
        case "top-centroids":
            return new RefusedError("protocol: this phone takes no part in learning phases");
        case "share-keys":
        case "mask-input":
        case "unmask":
            return bells();
        default:
            return "advertise" in given && given.advertise.type === "advertise-keys" ? bells() : null;
    }
}
export function openingOf(given) {
    if (given.advertise.type !== "send-report")
        throw bells();
    return given.advertise;
}
export function told(given, agreed) {
    const alike = { ...openingOf(given), type: "send-report", index: 0, offer: null };
    return joined(canonical(parameters, agreed), canonical(task, { ...given, advertise: alike }));
}
function bells() {
    return new RefusedError("protocol: this phone takes no part in Bell et al.'s sum");
}
function keyId() {
    const text = line(64, 1);
    return {
        read(value) {
            const read = text.read(value);
            if (!/^[A-Za-z0-9_-]+$/.test(read)) {
                throw new MalformedMessageError("a name of A-Z a-z 0-9 _ - is needed");
            }
            return read;
        },
        write: text.write,
    };
}
