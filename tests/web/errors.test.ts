import assert from "node:assert/strict";
import { test } from "node:test";

import {
  LocalError,
  MalformedMessageError,
  RefusedError,
} from "../../client/web/protocol/errors.ts";
import { RULES } from "../../client/web/protocol/rules.ts";

test("an error says its class and is told apart by it", () => {
  const error = new MalformedMessageError("a map has a key twice");
  assert.equal(String(error), "MalformedMessageError: a map has a key twice");
  assert.ok(!(error instanceof LocalError));
});

test("a refusal names a rule of the closed list", () => {
  assert.equal(new RefusedError("no").rule, "protocol");
  assert.ok(RULES.includes(new RefusedError("late", "closed").rule));
});
