/** Cryptography that a phone needs of its browser: looked for before it is needed. */

import { UnsupportedBrowserError } from "../protocol/errors.ts";

/** Curves, what their keys are for, and the first browsers that have them. */
const CURVES = [
  ["Ed25519", "sign", "Chrome 137, Firefox 129, Safari 17"],
  ["X25519", "deriveBits", "Chrome 133, Firefox 130, Safari 17"],
] as const;

/** Throw `UnsupportedBrowserError` where a phone could not sign requests or seal its answers. */
export async function checkBrowser(): Promise<void> {
  for (const [curve, use, browsers] of CURVES) {
    try {
      await crypto.subtle.generateKey(curve, false, [use]);
    } catch (error) {
      // WebKitGTK 2.50 fails by chance, as `keyPair` says.
      if ((error as Error).name === "OperationError") continue;
      throw new UnsupportedBrowserError(`${curve} in WebCrypto`, browsers);
    }
  }
}
