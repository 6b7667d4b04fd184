/**
 * Invitation of a phone in a browser, in the fragment of its page's address (docs/protocol.md,
 * section 1). Browsers do not send fragments to the page's host.
 */

import { canonical } from "../protocol/canonical.ts";
import { InvalidInputError, MalformedMessageError } from "../protocol/errors.ts";
import { bytes, line, map, type Of } from "../protocol/fields.ts";
import { compared, unpack } from "../protocol/wire.ts";

/** Beginning of a fragment; the digit is the format's version. */
const PREFIX = "earshot1.";
const LARGEST_FRAGMENT = 2048;

const phoneLink = map({
  server: line(256, 1),
  invitation: line(1024, 1),
  leader: bytes(32),
  helper: bytes(32),
});

/** An invitation: server, code, and the Ed25519 keys of both operators. */
export type PhoneLink = Of<typeof phoneLink>;

/**
 * Read the fragment of an address, without its `#`.
 *
 * Throws `MalformedMessageError` for anything but a canonical invitation of this version.
 */
export function readLink(fragment: string): PhoneLink {
  const letters = fragment.slice(PREFIX.length);
  const isWhole = fragment.startsWith(PREFIX) && /^[A-Za-z0-9_-]+$/.test(letters);
  if (!isWhole || fragment.length > LARGEST_FRAGMENT || letters.length % 4 === 1) {
    throw new MalformedMessageError("not an invitation, or part of it is missing");
  }
  const standard = letters.replaceAll("-", "+").replaceAll("_", "/");
  const text = atob(standard);
  const data = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
  const link = phoneLink.read(unpack(data, LARGEST_FRAGMENT));
  // An invitation has exactly one fragment: unused bits are zeros.
  const isCanonical =
    btoa(text).replaceAll("=", "") === standard && compared(canonical(phoneLink, link), data) === 0;
  if (!isCanonical || compared(link.leader, link.helper) === 0) {
    throw new MalformedMessageError("not a canonical invitation, or one with equal keys");
  }
  try {
    checkServer(link.server);
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error;
    throw new MalformedMessageError(error.message);
  }
  return link;
}

/**
 * Check a server's address: `https`, a host and an optional port, and nothing else; `http` is
 * accepted for loopback addresses only. Throws `InvalidInputError`.
 */
export function checkServer(server: string): void {
  const [, scheme, host] = /^(https?):\/\/([^\s\\/?#@]+)$/.exec(server) ?? [];
  let name: string | null = null;
  try {
    name = host === undefined ? null : new URL(server).hostname;
  } catch {
    // reported below
  }
  const isHere = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(name ?? "");
  if (!name || (scheme === "http" && !isHere)) {
    throw new InvalidInputError(
      `'${server.slice(0, 64)}' is not the address of a server, such as https://example.org`,
    );
  }
}
