import { checkWhole, demand } from "../checks.js";
import { LabelHierarchy, LARGEST_CHOICES, LARGEST_NAME } from "../environments.js";
import { InvalidInputError, InvalidParametersError } from "../errors.js";
import { bytes, line, list, map, oneOf, optional, real, whole } from "../fields.js";
import { release } from "../privacy/accounting.js";
import { compared } from "../wire.js";
const LARGEST_CROWD = 10 ** 8;
export const LARGEST_LABELS = 256;
const DIGEST_BYTES = 32;
const NONE = new Uint8Array();
export const labelName = line(LARGEST_NAME, 1);
export const encoderName = line(LARGEST_NAME);
export const releases = list(release, 4096);
export const choices = optional(list(list(labelName, LARGEST_CHOICES), LARGEST_LABELS), []);
export const COMMON = {
    phones: whole(),
    labels: list(labelName, 2 ** 16),
    dropout: real(),
    corrupted: real(),
    step_seconds: optional(real(), 86_400),
    noise_crowd: optional(whole(), 10_000),
    hierarchy: optional(bytes(0, DIGEST_BYTES), NONE),
    summation: optional(oneOf("bell", "two-operators", "two-operators-proved"), "bell"),
};
const common = map(COMMON);
export function honestSurvivors({ phones, dropout, corrupted }) {
    return Math.ceil(rounded((1 - dropout - corrupted) * phones));
}
export function leastSurvivors({ phones, dropout }) {
    return phones - Math.floor(rounded(dropout * phones));
}
export function checkCommon(given) {
    checkWhole("phones", given.phones, 3, LARGEST_CROWD);
    checkWhole("the number of labels", given.labels.length, 1, LARGEST_LABELS);
    for (const name of ["dropout", "corrupted"]) {
        const value = given[name];
        demand(value >= 0 && value < 1, `${name}=${value}: must be at least 0 and below 1`);
    }
    const seconds = given.step_seconds;
    demand(seconds > 0 && Number.isFinite(seconds), `step_seconds=${seconds}: must be above 0`);
    checkWhole("noise_crowd", given.noise_crowd, 1, LARGEST_CROWD);
    const isOnce = new Set(given.labels).size === given.labels.length;
    demand(isOnce, "labels repeat: every equivalence class is named once");
    const size = given.hierarchy.length;
    demand(size === 0 || size === DIGEST_BYTES, `hierarchy: ${DIGEST_BYTES} bytes or none`);
}
export async function agreedHierarchy(given, stated) {
    let hierarchy;
    try {
        demand(!stated.length || stated.length === given.labels.length, `choices for ${stated.length} of ${given.labels.length} labels`);
        hierarchy = stated.length
            ? new LabelHierarchy(given.labels.map((label, at) => [label, stated[at]]))
            : LabelHierarchy.flat(given.labels);
    }
    catch (error) {
        if (!(error instanceof InvalidInputError))
            throw error;
        throw new InvalidParametersError(`labels: ${error.message}`);
    }
    const digest = stated.length ? await hierarchy.digest() : NONE;
    demand(compared(digest, given.hierarchy) === 0, "the choices of the labels do not match the digest in the parameters");
    return hierarchy;
}
function rounded(value) {
    return Number(value.toFixed(6));
}
