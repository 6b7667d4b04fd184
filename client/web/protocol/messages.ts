/**
 * Every message between this phone and a server: tasks down, an answer up, and a few bodies.
 *
 * Tasks of learning phases and of Bell et al.'s sum are known by name, and refused (`refusalOf`).
 */

import { canonical } from "./canonical.ts";
import { InvalidInputError, MalformedMessageError, RefusedError } from "./errors.ts";
import {
  bytes,
  count,
  encode,
  type Field,
  line,
  list,
  map,
  nullable,
  type Of,
  optional,
  real,
  tagged,
  whole,
} from "./fields.ts";
import { matrix } from "./matrix.ts";
import { discovered, discoveryParameters, kindsOfCells, repetition } from "./phases/discovery.ts";
import { labelled, labellingParameters, proposed } from "./phases/labelling.ts";
import { choices, encoderName, labelName, LARGEST_LABELS, releases } from "./phases/parameters.ts";
import { geometryName } from "./phases/places.ts";
import { type Parameters, parameters } from "./phases/plan.ts";
import { statistics, statisticsParameters } from "./phases/statistics.ts";
import { refusal, refusalOfBell } from "./rules.ts";
import { type SendReport, sendReport } from "./secure_sum/offer.ts";
import { phoneReport } from "./secure_sum/report.ts";
import { KEY_ID, NO_KEY_ID } from "./signatures.ts";
import { type Bytes, joined, unpack, type Wire } from "./wire.ts";

const LARGEST_TASK_BYTES = 64 * 2 ** 20;
const LARGEST_CENTROIDS = 4096;
const identifier = bytes(16);

/** A task of a kind that this phone does not support: only its phase is read. */
const unspoken: Field<{ readonly phase: Bytes | null }> = {
  read(value) {
    const given: Wire = value instanceof Map ? value.get("phase") : null;
    return { phase: given instanceof Uint8Array && given.length === 16 ? given : null };
  },
  write() {
    throw new InvalidInputError("this phone cannot write this task");
  },
};

/** What opens a sum, inside the task that begins a part. */
const advertise = tagged("type", { "send-report": sendReport, "advertise-keys": unspoken });

const phase = identifier;
const votes = list(count, LARGEST_CENTROIDS);
const chances = list(real(0, 1), LARGEST_CENTROIDS);

/** Every task, by its `type`. */
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
    label_votes: list(list(count, LARGEST_LABELS), LARGEST_CENTROIDS),
    centroid_p_values: chances,
    name_p_values: chances,
    encoder: encoderName,
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
export type Task = Of<typeof task>;

/** A task that begins a part: it holds the one that opens its sum. */
export type PartTask = Extract<Task, { readonly advertise: unknown }>;

/** The ending of a phase. */
export type Ending = Extract<
  Task,
  { readonly type: "statistics" | "discovered" | "labelled" | "result" | "failed" }
>;

/** Return whether a task is the ending of a phase. */
export function isEnding(given: Task): given is Ending {
  return "privacy" in given || given.type === "failed";
}

/** Every answer of this phone, by its `type`. */
export const answer = tagged("type", { report: phoneReport });

/** Bodies of other requests and responses, which have no `type`. */
export const enrol = map({ public_key: bytes(32), attestation: line(16_384) });
export const enrolled = map({ phone: keyId() });
export const askTask = map({ known: optional(list(identifier, 8), []) });
/** Written alone; `rules` has all names. */
export const refuse = map({ phase, rule: line(64) });
export const leave = map({});

/**
 * Read a task.
 *
 * Throws `MalformedMessageError` for what is too large or is not a task.
 */
export function decodeTask(data: Uint8Array, limit = LARGEST_TASK_BYTES): Task {
  return task.read(unpack(data, limit));
}

/** Write a report as the body of an answer. */
export function encodeReport(report: Of<typeof phoneReport>): Bytes {
  return encode(answer, { type: "report", ...report });
}

/**
 * Return why this phone refuses a task whatever its limits: it supports neither learning phases nor
 * Bell et al.'s sum. Null for every other task.
 */
export function refusalOf(given: Task): RefusedError | null {
  switch (given.type) {
    case "cluster":
    case "global-centroids":
    case "top-centroids":
      return refusal("protocol", "this phone takes no part in learning phases");
    case "share-keys":
    case "mask-input":
    case "unmask":
      return refusalOfBell();
    default:
      return "advertise" in given && given.advertise.type === "advertise-keys"
        ? refusalOfBell()
        : null;
  }
}

/**
 * Return the opening of a part's sum by two operators.
 *
 * Throws `RefusedError` for another summation.
 */
export function openingOf(given: PartTask): SendReport {
  if (given.advertise.type !== "send-report") throw refusalOfBell();
  return given.advertise;
}

/**
 * Return the bytes that must be the same for all phones of a sum; the offer has their digest.
 *
 * `agreed` are the parameters of the phase, as they came with its first task.
 */
export function told(given: PartTask, agreed: Parameters): Bytes {
  const alike = { ...openingOf(given), type: "send-report", index: 0, offer: null } as const;
  return joined(canonical(parameters, agreed), canonical(task, { ...given, advertise: alike }));
}

function keyId(): Field<string> {
  const text = line(64);
  return {
    read(value) {
      const read = text.read(value);
      if (!KEY_ID.test(read)) throw new MalformedMessageError(NO_KEY_ID);
      return read;
    },
    write: text.write,
  };
}
