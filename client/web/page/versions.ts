/** Versions of the page: each has its own folder, and a newer one needs its reader's consent. */

const KEY = "earshot-version";

/** A version, and the SHA-256 of its list of digests. */
export interface Version {
  readonly version: string;
  readonly digest: string;
}

/** Return the version that the page's reader has agreed to; null if none is stored. */
export function agreedVersion(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null; // a browser that blocks a site's data throws
  }
}

/** Start with this version from now on; return whether the browser stored that. */
export function agreeTo(version: string): boolean {
  try {
    localStorage.setItem(KEY, version);
    return true;
  } catch {
    return false;
  }
}

/** Return the version of this page. */
export function ownVersion(): string {
  return new URL("..", import.meta.url).pathname.split("/").at(-2)!;
}

/** Return the host's newest version; null if it is not known. */
export async function newestVersion(): Promise<Version | null> {
  try {
    const response = await fetch(new URL("../../newest.json", import.meta.url), {
      cache: "no-store",
    });
    const { version, digest }: Partial<Version> = await response.json();
    const isOne = /^[\w.-]{1,64}$/.test(version ?? "") && /^[0-9a-f]{64}$/.test(digest ?? "");
    return isOne ? { version: version!, digest: digest! } : null;
  } catch {
    return null;
  }
}

/** Return the address of a version's page: of the file, since some hosts serve no folders. */
export function addressOf(version: string): string {
  return new URL(`../../${version}/page/index.html`, import.meta.url).href;
}
