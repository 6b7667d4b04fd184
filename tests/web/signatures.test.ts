import assert from "node:assert/strict";
import { test } from "node:test";

import { sha256 } from "../../client/web/protocol/canonical.ts";
import { InvalidInputError } from "../../client/web/protocol/errors.ts";
import { newSeed, sign, signatureBase, signingKey, verified } from "../../client/web/protocol/signatures.ts";
import { type Bytes, hex, utf8 } from "../../client/web/protocol/wire.ts";
import { of, vectors } from "./vectors.ts";

const { private_key, public_key, signed } = await vectors("signatures");
const key = await signingKey(of(private_key));

function signature(field: string): Bytes {
  const found = /^earshot=:(.*):$/.exec(field)!;
  return Uint8Array.from(atob(found[1]!), (letter) => letter.charCodeAt(0));
}

test("a seed gives the key pair", async () => {
  assert.equal(hex(key.publicKey), public_key);
  assert.equal(key.privateKey.extractable, false);
  await assert.rejects(signingKey(new Uint8Array(31)), InvalidInputError);
});

test("no seed begins with a zero byte, which one engine does not read", () => {
  const draw = crypto.getRandomValues;
  let draws = 0;
  crypto.getRandomValues = ((array: Bytes) => {
    draw.call(crypto, array);
    array[0] = draws++;
    return array;
  }) as typeof draw;
  try {
    const [seed, other] = [newSeed(), newSeed()];
    assert.deepEqual([draws, seed[0], other[0], seed.length], [3, 1, 2, 32]);
    assert.notEqual(hex(seed.slice(1)), hex(other.slice(1)));
  } finally {
    crypto.getRandomValues = draw;
  }
});

test("requests are signed as the vectors are", async () => {
  for (const { path, content_type, keyid, created, body, signature_base, fields } of signed) {
    const found = await sign(key.privateKey, keyid, created, path, content_type, of(body));
    // Ed25519 may be randomised, so that a signature is verified and not compared.
    assert.equal(found["Content-Digest"], fields["Content-Digest"]);
    assert.equal(found["Signature-Input"], fields["Signature-Input"]);
    const parameters = found["Signature-Input"].slice("earshot=".length);
    const base = signatureBase(path, content_type, found["Content-Digest"], parameters);
    assert.equal(new TextDecoder().decode(base), signature_base);
    for (const each of [found.Signature, fields.Signature]) {
      assert.ok(await verified(key.publicKey, signature(each), utf8(signature_base)));
      assert.ok(!(await verified(key.publicKey, signature(each), utf8(signature_base + " "))));
    }
  }
});

test("no key and no signature is none", async () => {
  const message = await sha256();
  const noPoint = new Uint8Array(32).fill(255, 0, 31);
  for (const [wrong, size] of [
    [key.publicKey, 64],
    [key.publicKey, 63],
    [key.publicKey, 0],
    [key.publicKey.slice(1), 64],
    [noPoint, 64],
    [new Uint8Array(), 64],
  ] as const) {
    assert.equal(await verified(wrong, new Uint8Array(size), message), false);
  }
});

test("a name or a time that the profile lacks is refused", async () => {
  for (const [name, created] of [
    ["", 1],
    ['a"b', 1],
    ["a\n", 1],
    ["a".repeat(65), 1],
    ["a", 0.5],
    ["a", -1],
    ["a", 10 ** 12],
  ] as const) {
    await assert.rejects(
      sign(key.privateKey, name, created, "/v1/task", "application/msgpack", new Uint8Array()),
      InvalidInputError,
    );
  }
});
