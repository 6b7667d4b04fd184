import { sha256 } from "./canonical.js";
import { InvalidInputError } from "./errors.js";
import { pack } from "./wire.js";
export const LARGEST_NAME = 64;
export const LARGEST_CHOICES = 4096;
export class LabelHierarchy {
    groups;
    #classOf;
    constructor(groups) {
        const classOf = new Map(groups.map(([name]) => [checkedName(name), name]));
        if (!groups.length || classOf.size < groups.length) {
            throw new InvalidInputError("a hierarchy needs classes, each once");
        }
        if (groups.reduce((sum, [, choices]) => sum + choices.length, 0) > LARGEST_CHOICES) {
            throw new InvalidInputError(`a hierarchy of more than ${LARGEST_CHOICES} choices`);
        }
        for (const [name, choices] of groups) {
            for (const choice of choices) {
                const known = classOf.get(checkedName(choice));
                if (known !== undefined && known !== name) {
                    throw new InvalidInputError(`'${choice}' stands for '${known}' and for '${name}'`);
                }
                classOf.set(choice, name);
            }
        }
        this.groups = groups;
        this.#classOf = classOf;
    }
    static flat(labels) {
        return new LabelHierarchy(labels.map((label) => [label, [label]]));
    }
    get classes() {
        return this.groups.map(([name]) => name);
    }
    get choices() {
        return this.groups.flatMap(([, choices]) => choices);
    }
    classOf(choice) {
        return choice === null ? null : (this.#classOf.get(choice) ?? null);
    }
    async digest() {
        return sha256(pack(this.groups));
    }
}
export function classesOf(choices, agreed, usual) {
    return choices.map((choice) => agreed.classOf(choice) ?? agreed.classOf(usual.classOf(choice)));
}
export function rowNames(hierarchy) {
    return [...new Set([...hierarchy.classes, ...hierarchy.choices])];
}
function checkedName(name) {
    const length = [...name].length;
    const isPrintable = !/[\p{C}\p{Z}]/u.test(name.replaceAll(" ", ""));
    if (length < 1 || length > LARGEST_NAME || !isPrintable || name !== name.trim()) {
        throw new InvalidInputError(`'${name.slice(0, LARGEST_NAME)}' is not a name: 1 to ${LARGEST_NAME} printable characters ` +
            "without spaces around them are accepted");
    }
    return name;
}
