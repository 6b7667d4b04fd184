/**
 * Environments where people are: classes, and a poll's choices for each (Python's `environments`).
 * Phone and server agree on them by a digest.
 */

import { sha256 } from "./canonical.ts";
import { InvalidInputError } from "./errors.ts";
import { type Bytes, pack } from "./wire.ts";

/** Most characters in the name of a class or choice. */
export const LARGEST_NAME = 64;
/** Most choices of all classes together. */
export const LARGEST_CHOICES = 4096;

/** Classes with the choices of each, in the order in which a poll shows them. */
export type Groups = readonly (readonly [string, readonly string[]])[];

/** Classes and their choices; a class is its own choice as well. */
export class LabelHierarchy {
  readonly groups: Groups;
  readonly #classOf: ReadonlyMap<string, string>;

  /**
   * Take classes with the choices of each.
   *
   * Throws `InvalidInputError` without a class, for a class twice, a choice of two classes, too
   * many choices, and a name that is empty, padded, not printable or too long.
   */
  constructor(groups: Groups) {
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
          throw new InvalidInputError(`'${choice}' belongs to '${known}' and '${name}'`);
        }
        classOf.set(choice, name);
      }
    }
    this.groups = groups;
    this.#classOf = classOf;
  }

  /** Return a hierarchy in which every label is its own class and only choice. */
  static flat(labels: readonly string[]): LabelHierarchy {
    return new LabelHierarchy(labels.map((label) => [label, [label]]));
  }

  /** Classes, in order. */
  get classes(): readonly string[] {
    return this.groups.map(([name]) => name);
  }

  /** Choices that a poll offers, group by group. */
  get choices(): readonly string[] {
    return this.groups.flatMap(([, choices]) => choices);
  }

  /** Return the class of a choice; null if it is unknown. */
  classOf(choice: string | null): string | null {
    return choice === null ? null : (this.#classOf.get(choice) ?? null);
  }

  /** Return the SHA-256 of classes, choices and their order, 32 bytes. */
  async digest(): Promise<Bytes> {
    return sha256(pack(this.groups));
  }
}

/**
 * Return each choice's class in a phase; null if it has none.
 *
 * A choice unknown to the phase belongs to the phase's class with the name of its class in the
 * phone's own polls. No choice may stop the phone from answering, since its silence would reveal
 * that one recording.
 */
export function classesOf(
  choices: readonly (string | null)[],
  agreed: LabelHierarchy,
  usual: LabelHierarchy,
): readonly (string | null)[] {
  return choices.map((choice) => agreed.classOf(choice) ?? agreed.classOf(usual.classOf(choice)));
}

/** Return the names of all rows of a sum of labels: classes, then choices of another name. */
export function rowNames(hierarchy: LabelHierarchy): readonly string[] {
  return [...new Set([...hierarchy.classes, ...hierarchy.choices])];
}

function checkedName(name: string): string {
  const length = [...name].length;
  const isPrintable = !/[\p{C}\p{Z}]/u.test(name.replaceAll(" ", ""));
  if (length < 1 || length > LARGEST_NAME || !isPrintable || name !== name.trim()) {
    throw new InvalidInputError(
      `'${name.slice(0, LARGEST_NAME)}' is not a name: 1 to ${LARGEST_NAME} printable characters ` +
        "without spaces around them are accepted",
    );
  }
  return name;
}
