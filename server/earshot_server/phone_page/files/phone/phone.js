import { canonical, sha256 } from "../protocol/canonical.js";
import { InvalidParametersError, RefusedError, UnexpectedMessageError, } from "../protocol/errors.js";
import { rowsOf } from "../protocol/matrix.js";
import { encodeReport, isEnding, openingOf, refusalOf, task, told, } from "../protocol/messages.js";
import { refusalOfChange, refusalsOfCost, refusalsOfEncoder, refusalsOfPhase, weightFor, } from "../protocol/phases/acceptance.js";
import { agreedHierarchy } from "../protocol/phases/parameters.js";
import { checkParameters, expensesOf, partOf, planOf, sumOf, } from "../protocol/phases/plan.js";
import { refusalsOfOffer } from "../protocol/secure_sum/offer.js";
import { makeReport } from "../protocol/secure_sum/report.js";
import { compared, joined } from "../protocol/wire.js";
import { agreementInput, cellsInput, contactsInput, environmentsOf, labelsInput, votesInput, } from "../voting/inputs.js";
import { checkUnreleased, throwFirst } from "./policy.js";
import { askedOf, NearestRecordings } from "./voters.js";
const DIGEST_BYTES = 32;
const ANSWERED = "answered";
export async function answered(memory, given) {
    const refused = refusalOf(given);
    if (refused)
        throw refused;
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
        }
        catch (error) {
            if (!(error instanceof InvalidParametersError))
                throw error;
            const said = `parameters: the task's parameters are not valid: ${error.message}`;
            throw new RefusedError(said, "parameters");
        }
    }
    if (isEnding(given))
        finish(memory, given);
    return null;
}
export async function shortfall(memory) {
    const { voter } = memory.settings;
    if (voter && memory.state.member?.parameters.type === "labelling") {
        const knows = memory.classesOf(voter.classes).some((each) => each !== null);
        return knows ? "" : "takes part without votes: its model knows none of the phase's labels";
    }
    const chosen = [...(await memory.recordings()).values()].map((each) => each.choice);
    if (!chosen.length)
        return "takes part without recordings";
    if (chosen.every((choice) => choice === null)) {
        return "takes part without labels: none of its recordings has one";
    }
    if (memory.classesOf(chosen).some((each) => each !== null))
        return "";
    const asked = memory.agreed.classes.slice(0, 12).join(", ");
    return `takes part without labels: the phase knows none of this phone's; it asks for ${asked}`;
}
async function report(memory, given) {
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
    for (const [number, recording] of counted)
        memory.change(number, { ...recording, counted: true });
    return body;
}
async function join(memory, given, index, stated) {
    const { phase } = given;
    checkParameters(stated);
    if (index >= stated.phones) {
        throw new RefusedError(`phone ${index} in a phase of ${stated.phones} phones`);
    }
    const ledger = await memory.ledger();
    const released = ledger.entries.find((each) => compared(each.phase, phase) === 0);
    if (released)
        checkUnreleased(ledger, phase, [released.release.step]);
    const present = memory.state.member;
    if (present && compared(present.phase, phase) === 0) {
        checkIndex(present, index);
        const changed = refusalOfChange(present.parameters, stated);
        if (changed)
            throw changed;
    }
    const choices = "choices" in given ? given.choices : [];
    await agreedHierarchy(stated, choices);
    const { encoder, policy } = memory.settings;
    throwFirst(refusalsOfEncoder(stated, encoder.name, encoder.dimensions));
    const today = memory.today();
    throwFirst(refusalsOfPhase(policy.limits, stated, ledger, today));
    const weight = weightFor(policy.limits, stated, ledger, today);
    const member = { phase, index, parameters: stated, weight };
    Object.assign(memory.state, { member, labels: stated.labels, choices });
    return member;
}
async function contribution(memory, { parameters, weight }, given) {
    const recordings = [...(await memory.recordings())];
    const choices = recordings.map(([, each]) => each.choice);
    const classes = memory.classesOf(choices);
    const only = (input) => ({ input, counted: [] });
    if (parameters.type === "statistics") {
        const environments = await environmentsIn(memory, parameters, choices, classes);
        const contacts = recordings.map(([, { day, counted }], at) => ({
            environment: environments[at],
            day,
            counted,
        }));
        const { input, counted } = contactsInput(parameters, contacts);
        return { input, counted: counted.map((at) => recordings[at]) };
    }
    if (parameters.type === "labelling") {
        const answers = await answersOf(memory, parameters, classes);
        return only(given.type === "check-labels"
            ? agreementInput(parameters, answers, given.proposed, weight)
            : votesInput(parameters, answers, weight));
    }
    const points = await memory.points(parameters.start.dimensions);
    if (given.type === "sum-labels") {
        return only(labelsInput(parameters, given, points, choices, classes, memory.agreed));
    }
    if (given.type === "sum-cells")
        return only(cellsInput(parameters, given, points, memory.agreed));
    throw new UnexpectedMessageError(`${given.type} in a discovery phase`);
}
async function environmentsIn(memory, given, choices, classes) {
    const { places } = given;
    const points = places && (await memory.points(places.centroids.columns));
    return environmentsOf(given, points, choices, classes);
}
async function answersOf(memory, given, classes) {
    const samples = rowsOf(given.samples);
    const voter = memory.settings.voter ?? new NearestRecordings(await memory.points(samples.columns), classes);
    return memory.classesOf(await askedOf(voter, samples));
}
function finish(memory, ending) {
    const { member } = memory.state;
    if ("centroids" in ending && compares(memory, ending)) {
        if (ending.type === "discovered")
            checkFit(ending);
        memory.keepNames(ending);
    }
    if (member && compared(member.phase, ending.phase) === 0)
        memory.leavePhase();
}
function compares(memory, result) {
    const { encoder } = memory.settings;
    if (result.encoder !== "" && result.encoder !== encoder.name)
        return false;
    const { rows, columns } = rowsOf(result.centroids);
    const { labels, label_names: names, name_p_values: chances } = result;
    expect(rows > 0 && columns <= encoder.dimensions, `centroids of ${rows} × ${columns}`);
    expect(labels.length === rows && labels.every((label) => label < names.length), "labels that do not fit its centroids");
    expect(!chances.length || chances.length === rows, "p-values that do not fit its centroids");
    return true;
}
function checkFit(result) {
    const { cells, centroids, labels, cell_prototypes: prototypes } = result;
    const sorts = (cells ? rowsOf(cells) : centroids).rows;
    for (const [name, { length }, needed, isOptional] of [
        ["choices", result.choices, labels.length, true],
        ["flags of cells", result.moved, sorts, false],
        ["lengths of cells", result.cell_lengths, sorts, true],
        ["prototypes of cells", prototypes, sorts, true],
        ["lengths", result.lengths, labels.length, true],
    ]) {
        expect(length === needed || (isOptional && !length), `${name} that do not fit the others`);
    }
    expect(prototypes.every((each) => each < centroids.rows), "cells of prototypes that it does not have");
    expect(!cells || cells.columns === centroids.columns, "cells of other dimensions");
}
function expect(holds, otherwise) {
    if (!holds)
        throw new UnexpectedMessageError(`a result with ${otherwise}`);
}
function memberOf(memory, phase) {
    const { member } = memory.state;
    if (member && compared(member.phase, phase) === 0)
        return member;
    throw new UnexpectedMessageError("a part of a phase that this phone is not in");
}
function checkIndex(member, index) {
    if (index === member.index)
        return;
    throw new RefusedError(`changed: this phone's number was ${member.index} and is ${index} now; it stays the same`, "changed");
}
