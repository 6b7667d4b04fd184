/** A store that lasts as long as its object, for tests. */

import type { Bytes } from "../protocol/wire.ts";
import type { Changes, Store } from "./interface.ts";

let made = 0;

/** A `Store` in memory with locks of its own: two of them are two phones. */
export class MemoryStore implements Store {
  readonly name = `earshot-phone in memory ${++made}`;
  #rows: ReadonlyMap<string, Bytes> = new Map();

  async read(prefix: string): Promise<ReadonlyMap<string, Bytes>> {
    const found = [...this.#rows].filter(([name]) => name.startsWith(prefix));
    found.sort(([one], [other]) => (one < other ? -1 : 1));
    return new Map(found.map(([name, content]) => [name, content.slice()]));
  }

  async commit(changes: Changes): Promise<void> {
    const rows = new Map(this.#rows);
    for (const [name, content] of changes) {
      if (content === null) rows.delete(name);
      else rows.set(name, content.slice());
    }
    this.#rows = rows;
  }

  async erase(): Promise<void> {
    this.#rows = new Map();
  }

  close(): void {}
}
