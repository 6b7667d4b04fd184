import assert from "node:assert/strict";
import { test } from "node:test";

import * as hearing from "../../client/web/hearing.ts";
import * as phone from "../../client/web/index.ts";
import { bytesOf } from "./files.ts";

/** The paths of all modules that a module loads at once. */
async function loaded(path: string, found = new Set<string>()): Promise<Set<string>> {
  if (found.has(path)) return found;
  found.add(path);
  const text = new TextDecoder().decode(await bytesOf(path));
  for (const [, type, name] of text.matchAll(/^(?:import|export|\}) (type )?.*?"(\.[^"]+)";$/gm)) {
    const place = new URL(name!, `https://a/${path}`).pathname.slice(1);
    if (type === undefined) await loaded(place, found);
  }
  return found;
}

test("the package gives an app what it needs, and errors by their names", () => {
  for (const name of ["openPhone", "readLink", "LabelHierarchy", "DEFAULT_LIMITS"]) {
    assert.ok(name in phone, name);
  }
  for (const name of [
    ...["RefusedError", "LostLedgerError", "BusyError", "NotEnrolledError", "UnknownLabelError"],
    ...["InvitationRefusedError", "WrongKeyError", "WrongStateError", "InvalidInputError"],
  ] as const) {
    assert.equal(phone[name].name, name);
  }
  assert.deepEqual(Object.keys(hearing).sort(), [
    "DEFAULT_ENCODER",
    "DamagedEncoderError",
    "FileEncoder",
    "MicrophoneError",
    "UnusableRecordingError",
    "listen",
    "shippedEncoder",
  ]);
});

test("a page that only visits its server loads nothing that hears", async () => {
  const paths = [...(await loaded("client/web/index.ts"))];
  assert.ok(paths.length > 30 && paths.includes("client/web/protocol/secure_sum/report.ts"));
  const heard = [...(await loaded("client/web/hearing.ts"))];
  assert.ok(heard.includes("client/web/phone/tflite.ts"));
  const both = paths.filter((path) => heard.includes(path) && path.includes("/phone/"));
  assert.deepEqual(both, []);
});
