/** Few things that the page itself keeps in the browser: which server, and what its reader chose. */

import { type PhoneLink, readLink } from "../phone/link.ts";
import { hex } from "../protocol/wire.ts";
import { PhoneError } from "./phone_line.ts";

const KEY = "earshot-page";

/** What the page keeps; the phone keeps everything else, sealed. */
export interface Kept {
  /** Fragment of the invitation that was accepted; null before. */
  readonly link?: string | null;
  /** Whether the server knows the phone, so that its invitation is not needed any more. */
  readonly enrolled?: boolean;
  /** Whether the phone takes part in groups that are smaller than phones accept by default. */
  readonly small?: boolean;
  readonly language?: string;
}

/** Return what is kept; what cannot be read is nothing. */
export function kept(): Kept {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    return typeof found === "object" && found !== null ? found : {};
  } catch {
    return {};
  }
}

/** Keep something more, or something else; throws a `PhoneError` where the browser does not. */
export function keep(more: Kept): void {
  try {
    localStorage.setItem(KEY, JSON.stringify({ ...kept(), ...more }));
  } catch (error) {
    throw new PhoneError("StoreUnavailableError", String(error));
  }
}

/** Keep nothing any more, the version of the page included. */
export function keepNothing(): void {
  localStorage.clear();
}

/** Return the invitation that was accepted; null where there is none, or none that reads. */
export function acceptedLink(): PhoneLink | null {
  const { link } = kept();
  return link ? tried(link) : null;
}

/** Return an invitation; null for what is none. */
export function tried(fragment: string): PhoneLink | null {
  try {
    return readLink(fragment);
  } catch {
    return null;
  }
}

/** Return a key in groups, for people who compare it with what an operator has published. */
export function grouped(key: Uint8Array): string {
  return hex(key).replace(/(.{8})(?!$)/g, "$1 ");
}
