/** Settings that the page keeps in the browser: its invitation, and its reader's choices. */

import { type PhoneLink, readLink } from "../phone/link.ts";
import { hex } from "../protocol/wire.ts";
import { PhoneError } from "./phone_line.ts";

const KEY = "earshot-page";

/** What the page keeps; the phone keeps everything else, sealed. */
export interface Kept {
  /** Fragment of the invitation that was accepted; null before. */
  readonly link?: string | null;
  /** Whether the server knows the phone, so that its invitation is no longer needed. */
  readonly enrolled?: boolean;
  /** Whether the phone takes part in groups that are smaller than phones accept by default. */
  readonly small?: boolean;
  readonly language?: string;
}

/** Return the kept settings; none if they cannot be read. */
export function kept(): Kept {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    return typeof found === "object" && found !== null ? found : {};
  } catch {
    return {};
  }
}

/** Add or replace settings; throws `PhoneError` if the browser does not store them. */
export function keep(more: Kept): void {
  try {
    localStorage.setItem(KEY, JSON.stringify({ ...kept(), ...more }));
  } catch (error) {
    throw new PhoneError("StoreUnavailableError", String(error));
  }
}

/** Remove all settings, including the agreed version of the page. */
export function keepNothing(): void {
  localStorage.clear();
}

/** Return the accepted invitation; null if there is none, or it is invalid. */
export function acceptedLink(): PhoneLink | null {
  const { link } = kept();
  return link ? tried(link) : null;
}

/** Parse an invitation; return null if it is invalid. */
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
