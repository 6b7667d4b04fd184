import assert from "node:assert/strict";
import { test } from "node:test";

import { checkServer, readLink } from "../../client/web/phone/link.ts";
import { InvalidInputError, MalformedMessageError } from "../../client/web/protocol/errors.ts";
import { hex } from "../../client/web/protocol/wire.ts";
import { vectors } from "./vectors.ts";

test("links of the vectors are read", async () => {
  const { links } = await vectors("links");
  assert.ok(links.length >= 3);
  for (const { fragment, server, invitation, leader, helper } of links) {
    const link = readLink(fragment);
    assert.deepEqual(
      [link.server, link.invitation, hex(link.leader), hex(link.helper)],
      [server, invitation, leader, helper],
    );
  }
});

test("every other fragment is refused", async () => {
  const { links, refused } = await vectors("links");
  assert.ok(refused.length >= 25);
  for (const { why, fragment } of refused) {
    assert.throws(() => readLink(fragment), MalformedMessageError, why);
  }
  const good: string = links[0].fragment;
  for (let at = 0; at < good.length; at++) {
    // Another letter gives another link, or none; a letter less gives none.
    const other = good[at] === "A" ? "B" : "A";
    let found: string | null = null;
    try {
      found = JSON.stringify(readLink(good.slice(0, at) + other + good.slice(at + 1)));
    } catch (error) {
      assert.ok(error instanceof MalformedMessageError);
    }
    assert.notEqual(found, JSON.stringify(readLink(good)));
    assert.throws(() => readLink(good.slice(0, at) + good.slice(at + 1)), MalformedMessageError);
  }
});

test("a server has a scheme and a host, and nothing behind them", () => {
  for (const server of ["https://a.example", "http://127.0.0.1:8000", "http://[::1]:1"]) {
    checkServer(server);
  }
  for (const server of [
    ...["http://a.example", "http://localhost.example", "http://127.0.0.1.example", "https://"],
    ...["https://a/", "https://a?", "https://a#b", "https://a\\b", "https://b@a", " https://a"],
    ...["https://a:99999", "https://a\n", "file://a", "https:/a", "http://[::2]"],
  ]) {
    assert.throws(() => checkServer(server), InvalidInputError, server);
  }
});
