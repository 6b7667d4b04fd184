/** Cryptography that a phone needs of its browser: looked for before it is needed. */

import { UnsupportedBrowserError } from "../protocol/errors.ts";

/** Throw `UnsupportedBrowserError` where a phone could not sign requests or seal its answers. */
export async function checkBrowser(): Promise<void> {
  for (const [curve, use] of [
    ["Ed25519", "sign"],
    ["X25519", "deriveBits"],
  ] as const) {
    try {
      await crypto.subtle.generateKey(curve, false, [use]);
    } catch (error) {
      // WebKitGTK 2.50 fails by chance, as `keyPair` says.
      if ((error as Error).name === "OperationError") continue;
      throw new UnsupportedBrowserError(`${curve} in WebCrypto`);
    }
  }
}
