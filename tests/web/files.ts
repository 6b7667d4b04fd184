/** Files of this repository, in Node and in a browser. */

import type { Bytes } from "../../client/web/protocol/wire.ts";

/** Return the bytes of a file, by its path in the repository. */
export async function bytesOf(path: string): Promise<Bytes> {
  const place = new URL(`../../${path}`, import.meta.url);
  return place.protocol === "file:"
    ? new Uint8Array(await (await import("node:fs/promises")).readFile(place))
    : new Uint8Array(await (await fetch(place)).arrayBuffer());
}
