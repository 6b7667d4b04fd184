/** Check that a browser has the cryptography that phones need. */

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
      // WebKitGTK 2.50 fails at random; see `keyPair`.
      if ((error as Error).name === "OperationError") continue;
      throw new UnsupportedBrowserError(`${curve} in WebCrypto`);
    }
  }
}
