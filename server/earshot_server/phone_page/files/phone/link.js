import { canonical } from "../protocol/canonical.js";
import { InvalidInputError, MalformedMessageError } from "../protocol/errors.js";
import { bytes, line, map } from "../protocol/fields.js";
import { compared, unpack } from "../protocol/wire.js";
const PREFIX = "earshot1.";
const LARGEST_FRAGMENT = 2048;
const phoneLink = map({
    server: line(256, 1),
    invitation: line(1024, 1),
    leader: bytes(32),
    helper: bytes(32),
});
export function readLink(fragment) {
    const letters = fragment.slice(PREFIX.length);
    const isWhole = fragment.startsWith(PREFIX) && /^[A-Za-z0-9_-]+$/.test(letters);
    if (!isWhole || fragment.length > LARGEST_FRAGMENT || letters.length % 4 === 1) {
        throw new MalformedMessageError("this is no invitation, or part of it is missing");
    }
    const standard = letters.replaceAll("-", "+").replaceAll("_", "/");
    const text = atob(standard);
    const data = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
    const link = phoneLink.read(unpack(data, LARGEST_FRAGMENT));
    const isCanonical = btoa(text).replaceAll("=", "") === standard && compared(canonical(phoneLink, link), data) === 0;
    if (!isCanonical || compared(link.leader, link.helper) === 0) {
        throw new MalformedMessageError("an invitation that nobody writes so");
    }
    try {
        checkServer(link.server);
    }
    catch (error) {
        if (!(error instanceof InvalidInputError))
            throw error;
        throw new MalformedMessageError(error.message);
    }
    return link;
}
export function checkServer(server) {
    const [, scheme, host] = /^(https?):\/\/([^\s\\/?#@]+)$/.exec(server) ?? [];
    let name = null;
    try {
        name = host === undefined ? null : new URL(server).hostname;
    }
    catch {
    }
    const isHere = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(name ?? "");
    if (!name || (scheme === "http" && !isHere)) {
        throw new InvalidInputError(`'${server.slice(0, 64)}' is not the address of a server, such as https://example.org`);
    }
}
