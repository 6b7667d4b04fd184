/**
 * Errors of two kinds: the caller's mistakes and the other side's, as in Python's `errors`.
 *
 * A `LocalError` is the caller's mistake, a `RemoteError` a wrong message from the other side. Code
 * that talks to untrusted parties catches `RemoteError` and goes on.
 */

import type { Rule } from "./rules.ts";

/**
 * Base of every error that Earshot raises on purpose. Each class states its name, since minifiers
 * rename classes.
 */
export class EarshotError extends Error {
  override name = "EarshotError";
}

/** The caller's mistake. */
export class LocalError extends EarshotError {
  override name = "LocalError";
}

/** The other side's mistake; nothing has changed here. */
export class RemoteError extends EarshotError {
  override name = "RemoteError";
}

/** Parameters that no phase can run under; the message says what would be accepted. */
export class InvalidParametersError extends LocalError {
  override name = "InvalidParametersError";
}

/** An array, a label or a file of the wrong shape, type or range. */
export class InvalidInputError extends LocalError {
  override name = "InvalidInputError";
}

/** A call that is not allowed in the object's present state. */
export class WrongStateError extends LocalError {
  override name = "WrongStateError";
}

/** A browser that lacks a feature phones need; the message says which browsers have all. */
export class UnsupportedBrowserError extends LocalError {
  override name = "UnsupportedBrowserError";

  constructor(missing: string) {
    super(`phones need Chrome 137, Firefox 130, Safari 17 or later; this browser lacks ${missing}`);
  }
}

/** A message that does not decode, is too large, or whose fields contradict each other. */
export class MalformedMessageError extends RemoteError {
  override name = "MalformedMessageError";
}

/** A message of the wrong round, sum, phase or sender: late, early, misdirected or forged. */
export class UnexpectedMessageError extends RemoteError {
  override name = "UnexpectedMessageError";
}

/** A second answer where one has been accepted already. */
export class RepeatedMessageError extends RemoteError {
  override name = "RepeatedMessageError";
}

/** The phone refuses what the server asks for; the message says why and what would be accepted. */
export class RefusedError extends RemoteError {
  override name = "RefusedError";
  /** Name of the rule that forbids it. */
  readonly rule: Rule;

  constructor(message: string, rule: Rule = "protocol") {
    super(message);
    this.rule = rule;
  }
}
