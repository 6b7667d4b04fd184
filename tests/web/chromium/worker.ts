/** A store in a worker, where the file of its secret is written in place. */

import { utf8 } from "../../../client/web/protocol/wire.ts";
import { SealedRows } from "../../../client/web/store/sealed_rows.ts";

/** Names of the rows that the worker found, or why it could not. */
export type Found = readonly string[] | string;

onmessage = async ({ data: name }: MessageEvent<string>) => {
  try {
    const store = new SealedRows(undefined, name);
    const found = [...(await store.read("")).keys()];
    await store.commit(new Map([["from the worker", utf8("1")]]));
    await store.commit(new Map([["from the page", null]]), true);
    store.close();
    postMessage(found satisfies Found);
  } catch (error) {
    postMessage(String(error) satisfies Found);
  }
};
