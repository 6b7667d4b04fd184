import assert from "node:assert/strict";
import { test } from "node:test";

import * as hearing from "../../client/web/hearing.ts";
import * as phone from "../../client/web/index.ts";
import * as errors from "../../client/web/protocol/errors.ts";
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

test("every error states the name of its class itself: minified classes have others", () => {
  const classes = Object.entries({ ...errors, ...phone, ...hearing }).filter(([name]) =>
    name.endsWith("Error"),
  ) as [string, new (...given: string[]) => Error][];
  assert.ok(classes.length > 20);
  for (const [name, Kind] of classes) {
    const Renamed = class extends Kind {};
    assert.equal(new Renamed("").name, name);
  }
});

test("a refusal names a rule of the closed list", () => {
  assert.equal(new RefusedError("no").rule, "protocol");
  assert.ok(RULES.includes(new RefusedError("late", "closed").rule));
});
