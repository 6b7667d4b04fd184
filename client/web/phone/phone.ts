/**
 * A phone's part in phases: a task in, an answer out, and the changes to its memory.
 *
 * The caller commits the answer, its changes and its ledger entry in one transaction before
 * anything is sent. A repeated task gets the same answer, and costs nothing.
 */

import { canonical, sha256 } from "../protocol/canonical.ts";
import {
  InvalidParametersError,
  RefusedError,
  UnexpectedMessageError,
} from "../protocol/errors.ts";
import type { Of } from "../protocol/fields.ts";
import { rowsOf } from "../protocol/matrix.ts";
import {
  encodeReport,
  type Ending,
  isEnding,
  openingOf,
  type PartTask,
  refusalOf,
  type Task,
  task,
  told,
} from "../protocol/messages.ts";
import {
  refusalOfChange,
  refusalsOfCost,
  refusalsOfEncoder,
  refusalsOfPhase,
  weightFor,
} from "../protocol/phases/acceptance.ts";
import type { discovered } from "../protocol/phases/discovery.ts";
import type { LabellingParameters } from "../protocol/phases/labelling.ts";
import { agreedHierarchy } from "../protocol/phases/parameters.ts";
import {
  checkParameters,
  expensesOf,
  type Parameters,
  partOf,
  planOf,
  sumOf,
} from "../protocol/phases/plan.ts";
import { refusalsOfOffer } from "../protocol/secure_sum/offer.ts";
import { makeReport } from "../protocol/secure_sum/report.ts";
import { type Bytes, compared, joined } from "../protocol/wire.ts";
import {
  agreementInput,
  cellsInput,
  contactsInput,
  labelsInput,
  votesInput,
} from "../voting/inputs.ts";
import type { Memory, Naming, Recording, State } from "./memory.ts";
import { checkUnreleased, throwFirst } from "./policy.ts";
import { askedOf, NearestRecordings } from "./voters.ts";

type Member = NonNullable<State["member"]>;
type Choices = readonly (string | null)[];

const DIGEST_BYTES = 32;
const ANSWERED = "answered";

/**
 * Answer a task: return the body to send, or null for none. The memory is not committed.
 *
 * Throws `RefusedError` where the task asks for something that this phone does not do,
 * `UnexpectedMessageError` where it does not fit what the phone is doing, and
 * `MalformedMessageError` where a matrix in it is broken.
 */
export async function answered(memory: Memory, given: Task): Promise<Bytes | null> {
  const refused = refusalOf(given);
  if (refused) throw refused;
  if ("advertise" in given) {
    const digest = await sha256(canonical(task, given));
    const last = await memory.get(ANSWERED);
    if (last && compared(last.subarray(0, DIGEST_BYTES), digest) === 0) {
      return last.slice(DIGEST_BYTES);
    }
    try {
      const body = await report(memory, given);
      memory.put(ANSWERED, joined(digest, body));
      return body;
    } catch (error) {
      if (!(error instanceof InvalidParametersError)) throw error;
      const said = `parameters: the task's parameters are not valid: ${error.message}`;
      throw new RefusedError(said, "parameters");
    }
  }
  if (isEnding(given)) finish(memory, given);
  return null;
}

/** Describe missing data for the newest phase, for the user; empty if there is none. */
export async function shortfall(memory: Memory): Promise<string> {
  const { voter } = memory.settings;
  if (voter && memory.state.member?.parameters.type === "labelling") {
    const knows = memory.classesOf(voter.classes).some((each) => each !== null);
    return knows ? "" : "takes part without votes: its model knows none of the phase's labels";
  }
  const chosen = [...(await memory.recordings()).values()].map((each) => each.choice);
  if (!chosen.length) return "takes part without recordings";
  if (chosen.every((choice) => choice === null)) {
    return "takes part without labels: none of its recordings has one";
  }
  if (memory.classesOf(chosen).some((each) => each !== null)) return "";
  const asked = memory.agreed.classes.slice(0, 12).join(", ");
  return `takes part without labels: the phase knows none of this phone's; it asks for ${asked}`;
}

/** Make the report for a part of a phase; join the phase first if this is its first part. */
async function report(memory: Memory, given: PartTask): Promise<Bytes> {
  const opening = openingOf(given);
  const stated = "parameters" in given ? given.parameters : null;
  const member = stated
    ? await join(memory, given, opening.index, stated)
    : memberOf(memory, given.phase);
  const { phase, parameters: agreed, weight } = member;
  const part = partOf(planOf(agreed), given);
  const { input, counted } = await contribution(memory, member, given);
  const ledger = await memory.ledger();
  checkUnreleased(ledger, phase, [part.name]);
  checkIndex(member, opening.index);
  const { limits, operators } = memory.settings.policy;
  const wording = told(given, agreed);
  const now = memory.settings.clock();
  throwFirst(await refusalsOfOffer(opening, sumOf(agreed, part), wording, operators, now));
  memory.begin(opening.sum_id);
  const body = encodeReport(await makeReport(opening, input));
  const spent = expensesOf(agreed, weight).filter((each) => each.release.step === part.name);
  const today = memory.today();
  throwFirst(refusalsOfCost(limits, spent, ledger, today, phase));
  memory.book(await ledger.append(phase, spent, today));
  // Even if the phase fails now, counted recordings count in no other histogram.
  for (const [number, recording] of counted) memory.change(number, { ...recording, counted: true });
  return body;
}

/** Take part in a phase, if this phone agrees to it. */
async function join(
  memory: Memory,
  given: PartTask,
  index: number,
  stated: Parameters,
): Promise<Member> {
  const { phase } = given;
  checkParameters(stated);
  if (index >= stated.phones) {
    throw new RefusedError(`phone ${index} in a phase of ${stated.phones} phones`);
  }
  const ledger = await memory.ledger();
  const released = ledger.entries.find((each) => compared(each.phase, phase) === 0);
  if (released) checkUnreleased(ledger, phase, [released.release.step]);
  const present = memory.state.member;
  if (present && compared(present.phase, phase) === 0) {
    checkIndex(present, index);
    const changed = refusalOfChange(present.parameters, stated);
    if (changed) throw changed;
  }
  const choices = "choices" in given ? given.choices : [];
  await agreedHierarchy(stated, choices);
  const { encoder, policy } = memory.settings;
  throwFirst(refusalsOfEncoder(stated, encoder.name, encoder.dimensions));
  const today = memory.today();
  throwFirst(refusalsOfPhase(policy.limits, stated, ledger, today));
  // It depends on the ledger alone, and on nothing that was heard.
  const weight = weightFor(policy.limits, stated, ledger, today);
  const member = { phase, index, parameters: stated, weight };
  Object.assign(memory.state, { member, labels: stated.labels, choices });
  return member;
}

/** A phone's input to a sum, and the recordings that it uses up. */
interface Contribution {
  readonly input: Int32Array;
  readonly counted: readonly (readonly [number, Recording])[];
}

async function contribution(
  memory: Memory,
  { parameters, weight }: Member,
  given: PartTask,
): Promise<Contribution> {
  const recordings = [...(await memory.recordings())];
  const choices = recordings.map(([, each]) => each.choice);
  const classes = memory.classesOf(choices);
  const only = (input: Int32Array): Contribution => ({ input, counted: [] });
  if (parameters.type === "statistics") {
    const { places } = parameters;
    const points = places && (await memory.points(places.centroids.columns));
    const contacts = recordings.map(([, each]) => each);
    const { input, counted } = contactsInput(parameters, contacts, classes, points);
    return { input, counted: counted.map((at) => recordings[at]!) };
  }
  if (parameters.type === "labelling") {
    const answers = await answersOf(memory, parameters, classes);
    return only(
      given.type === "check-labels"
        ? agreementInput(parameters, answers, given.proposed, weight)
        : votesInput(parameters, answers, weight),
    );
  }
  const points = await memory.points(parameters.start.dimensions);
  if (given.type === "sum-labels") {
    return only(labelsInput(parameters, given, points, choices, classes, memory.agreed));
  }
  if (given.type === "sum-cells") return only(cellsInput(parameters, given, points, memory.agreed));
  throw new UnexpectedMessageError(`${given.type} in a discovery phase`);
}

/** Return the label of each sample; null where the voter has none. */
async function answersOf(
  memory: Memory,
  given: LabellingParameters,
  classes: Choices,
): Promise<Choices> {
  const samples = rowsOf(given.samples);
  const voter =
    memory.settings.voter ?? new NearestRecordings(await memory.points(samples.columns), classes);
  return memory.classesOf(await askedOf(voter, samples));
}

/** Keep a phase's result and leave the phase; another one under way continues. */
function finish(memory: Memory, ending: Ending): void {
  const { member } = memory.state;
  if ("centroids" in ending && compares(memory, ending)) {
    if (ending.type === "discovered") checkFit(ending);
    memory.keepNames(ending);
  }
  if (member && compared(member.phase, ending.phase) === 0) memory.leavePhase();
}

/** Return whether a result is of this phone's encoder; refuse an inconsistent one. */
function compares(memory: Memory, result: Naming): boolean {
  const { encoder } = memory.settings;
  if (result.encoder !== encoder.name) return false;
  const { rows, columns } = rowsOf(result.centroids);
  const { labels, label_names: names, name_p_values: chances } = result;
  expect(rows > 0 && columns <= encoder.dimensions, `centroids of ${rows} × ${columns}`);
  expect(
    labels.length === rows && labels.every((label) => label < names.length),
    "labels that do not fit its centroids",
  );
  expect(chances.length === rows, "p-values that do not fit its centroids");
  return true;
}

function checkFit(result: { readonly [N in keyof typeof discovered]: Of<(typeof discovered)[N]> }) {
  const { cells, centroids, labels, cell_prototypes: prototypes } = result;
  const { rows } = rowsOf(cells);
  for (const [name, { length }, needed] of [
    ["choices", result.choices, labels.length],
    ["flags of cells", result.moved, rows],
    ["lengths of cells", result.cell_lengths, rows],
    ["prototypes of cells", prototypes, rows],
    ["lengths", result.lengths, labels.length],
  ] as const) {
    expect(length === needed, `${name} that do not fit the others`);
  }
  expect(
    prototypes.every((each) => each < centroids.rows),
    "cells of prototypes that it does not have",
  );
  expect(cells.columns === centroids.columns, "cells of other dimensions");
}

function expect(holds: boolean, otherwise: string): void {
  if (!holds) throw new UnexpectedMessageError(`a result with ${otherwise}`);
}

function memberOf(memory: Memory, phase: Bytes): Member {
  const { member } = memory.state;
  if (member && compared(member.phase, phase) === 0) return member;
  throw new UnexpectedMessageError("a part of a phase that this phone is not in");
}

function checkIndex(member: Member, index: number): void {
  if (index === member.index) return;
  throw new RefusedError(
    `changed: this phone's number was ${member.index} and is ${index} now; it stays the same`,
    "changed",
  );
}
