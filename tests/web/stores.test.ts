import assert from "node:assert/strict";
import { test } from "node:test";

import {
  InvalidInputError,
  MalformedMessageError,
  UnsupportedBrowserError,
} from "../../client/web/protocol/errors.ts";
import { type Bytes, hex, utf8 } from "../../client/web/protocol/wire.ts";
import {
  DamagedStoreError,
  LostStoreError,
  type Store,
  StoreUnavailableError,
  WrongKeyError,
} from "../../client/web/store/interface.ts";
import { alone, BusyError, inTurn } from "../../client/web/store/locks.ts";
import { MemoryStore } from "../../client/web/store/memory.ts";
import { SealedRows } from "../../client/web/store/sealed_rows.ts";

const KEY = new Uint8Array(32).fill(1);
const hasDatabases = typeof indexedDB !== "undefined";
let made = 0;

function fresh(key?: Bytes): SealedRows {
  return new SealedRows(key, `test ${Date.now()} ${++made}`);
}

const STORES: Record<string, () => Store> = { memory: () => new MemoryStore() };
if (hasDatabases) {
  STORES["sealed rows"] = () => fresh();
  STORES["sealed rows under an app's key"] = () => fresh(KEY);
}

function changes(given: Record<string, string | null>): Map<string, Bytes | null> {
  return new Map(
    Object.entries(given).map(([name, text]) => [name, text === null ? null : utf8(text)]),
  );
}

async function shown(store: Store, prefix = ""): Promise<string[]> {
  const rows = [...(await store.read(prefix))];
  return rows.map(([name, content]) => `${name}=${new TextDecoder().decode(content)}`);
}

for (const [kind, make] of Object.entries(STORES)) {
  test(`${kind}: rows are kept, replaced and removed`, async () => {
    const store = make();
    assert.deepEqual(await shown(store), []);
    await store.commit(changes({ b: "1", a: "", "a/2": "x", "a/10": "y" }));
    assert.deepEqual(await shown(store), ["a=", "a/10=y", "a/2=x", "b=1"]);
    assert.deepEqual(await shown(store, "a/"), ["a/10=y", "a/2=x"]);
    assert.deepEqual(await shown(store, "c"), []);
    await store.commit(changes({ b: "2", a: null, none: null }));
    assert.deepEqual(await shown(store), ["a/10=y", "a/2=x", "b=2"]);
    store.close();
    assert.deepEqual(await shown(store, "b"), ["b=2"]);
    await store.commit(changes({ "a/10": null, c: "3" }), true);
    assert.deepEqual(await shown(store), ["a/2=x", "b=2", "c=3"]);
    await store.commit(changes({}), true);
    assert.deepEqual(await shown(store), ["a/2=x", "b=2", "c=3"]);
    await store.erase();
    assert.deepEqual(await shown(store), []);
    await store.commit(changes({ again: "1" }));
    assert.deepEqual(await shown(store), ["again=1"]);
    await store.erase();
  });

  test(`${kind}: what is handed in or out may be changed afterwards`, async () => {
    const [store, content] = [make(), Uint8Array.of(1, 2, 3)];
    await store.commit(new Map([["a", content]]));
    content.fill(9);
    const row = (await store.read("a")).get("a")!;
    assert.equal(hex(row), "010203");
    row.fill(9);
    assert.equal(hex((await store.read("a")).get("a")!), "010203");
    await store.erase();
  });

  test(`${kind}: contents of any size come back`, async () => {
    const store = make();
    for (const size of [0, 1, 1019, 1020, 1021, 2 ** 17 + 7]) {
      const content = new Uint8Array(size).map((_, at) => at * 7);
      await store.commit(new Map([["a", content]]));
      assert.equal(hex((await store.read("a")).get("a")!), hex(content));
    }
    await store.erase();
  });
}

test("one at a time has the lock of a name", async () => {
  const name = `a lock ${Date.now()}`;
  let free = (): void => {};
  const first = alone(name, () => new Promise<void>((resolve) => (free = resolve)));
  await Promise.resolve();
  await assert.rejects(
    alone(name, async () => 1),
    BusyError,
  );
  assert.equal(await alone(`${name}, another`, async () => 2), 2);
  free();
  await first;
  assert.equal(await alone(name, async () => 3), 3);
  const broken = async (): Promise<never> => {
    throw new MalformedMessageError("as it is");
  };
  await assert.rejects(alone(name, broken), MalformedMessageError);
  assert.equal(await alone(name, async () => 4), 4);
});

test("work waits for its turn, and for no longer than it has patience", async () => {
  const [name, done]: [string, string[]] = [`a turn ${Date.now()}`, []];
  const broken = new MalformedMessageError("as it is");
  let free = (): void => {};
  const first = inTurn(name, async () => {
    await new Promise<void>((resolve) => (free = resolve));
    done.push("first");
  });
  // A busy machine may take longer over this than a phone's patience lasts.
  const second = inTurn(name, async () => done.push("second"), 3_600_000);
  await assert.rejects(
    inTurn(name, async () => done.push("late"), 1),
    BusyError,
  );
  assert.deepEqual(done, []);
  free();
  await Promise.all([first, second]);
  assert.deepEqual(done, ["first", "second"]);
  // Patience is for waiting, and not for the work.
  const [patience, { timeout }] = [new AbortController(), AbortSignal];
  AbortSignal.timeout = () => patience.signal;
  try {
    const slow = async (): Promise<never> => {
      patience.abort();
      throw broken;
    };
    await assert.rejects(inTurn(name, slow), MalformedMessageError);
  } finally {
    AbortSignal.timeout = timeout;
  }
  assert.equal(await inTurn(name, async () => 4), 4);
});

test("a page without locks keeps no phone", async () => {
  const own = Object.getOwnPropertyDescriptor(navigator, "locks");
  Object.defineProperty(navigator, "locks", { value: undefined, configurable: true });
  try {
    for (const take of [alone, inTurn]) {
      await assert.rejects(
        take("a lock", async () => 1),
        /UnsupportedBrowserError: .* Web Locks.* https/,
      );
    }
  } finally {
    if (own) Object.defineProperty(navigator, "locks", own);
    else delete (navigator as { locks?: unknown }).locks;
  }
});

test("where there is no navigator, as in Node 20, it is the browser that is at fault", async () => {
  const own = Object.getOwnPropertyDescriptor(globalThis, "navigator")!;
  Object.defineProperty(globalThis, "navigator", { value: undefined, configurable: true });
  try {
    await assert.rejects(
      inTurn("a lock", async () => 1),
      /UnsupportedBrowserError: .* Web Locks/,
    );
    if (hasDatabases) await assert.rejects(fresh().read(""), UnsupportedBrowserError);
  } finally {
    Object.defineProperty(globalThis, "navigator", own);
  }
});

test("a key has 32 bytes", () => {
  assert.throws(() => new SealedRows(new Uint8Array(31)), InvalidInputError);
});

if (hasDatabases) {
  const secretOf = async (name: string): Promise<File> => {
    const folder = await navigator.storage.getDirectory();
    return (await folder.getFileHandle(`${name}.key`)).getFile();
  };
  const bytesIn = async (name: string): Promise<Bytes> =>
    new Uint8Array(await (await secretOf(name)).arrayBuffer());
  const keep = async (name: string, ...secrets: readonly (Blob | Bytes)[]): Promise<void> => {
    const folder = await navigator.storage.getDirectory();
    const stream = await (await folder.getFileHandle(`${name}.key`)).createWritable();
    for (const secret of secrets) await stream.write(secret as Blob);
    await stream.close();
  };
  const drop = (name: string): Promise<unknown> =>
    new Promise((resolve, reject) => {
      const request = indexedDB.deleteDatabase(name);
      request.onsuccess = resolve;
      request.onerror = () => reject(request.error);
    });
  /** Some work while the browser's storage refuses something, by an error of this name. */
  const without = async <K extends string>(
    refusing: Record<K, (...given: never[]) => unknown>,
    method: K,
    name: string,
    work: () => Promise<void>,
  ): Promise<void> => {
    const real = refusing[method];
    refusing[method] = async () => {
      throw new DOMException("not now", name);
    };
    try {
      await work();
    } finally {
      refusing[method] = real;
    }
  };
  /** Some work while the database takes no rows. */
  const withoutWriting = async (work: () => Promise<void>): Promise<void> => {
    const { transaction } = IDBDatabase.prototype;
    IDBDatabase.prototype.transaction = function (names, mode, options) {
      if (mode === "readwrite") throw new DOMException("the disk is full", "QuotaExceededError");
      return transaction.call(this, names, mode, options);
    };
    try {
      await work();
    } finally {
      IDBDatabase.prototype.transaction = transaction;
    }
  };
  /** Every row as it lies in the database, after some change to them. */
  const raw = (name: string, change?: (rows: IDBObjectStore) => void): Promise<[string, Bytes][]> =>
    new Promise((resolve, reject) => {
      const request = indexedDB.open(name);
      request.onerror = () => reject(request.error);
      request.onsuccess = () => {
        const database = request.result;
        const transaction = database.transaction("rows", "readwrite");
        const rows = transaction.objectStore("rows");
        change?.(rows);
        const [names, contents] = [rows.getAllKeys(), rows.getAll()];
        transaction.oncomplete = () => {
          database.close();
          resolve(names.result.map((each, at) => [String(each), contents.result[at] as Bytes]));
        };
      };
    });

  test("rows are sealed: all of one length, and nothing can be read in them", async () => {
    const store = fresh();
    await store.commit(changes({ a: "secret", b: "secret", c: "s".repeat(1000) }));
    const rows = await raw(store.name);
    assert.equal(rows.length, 4); // with the proof
    const found = new Set(rows.map(([, content]) => hex(content)));
    assert.equal(found.size, 4);
    for (const digits of found) {
      assert.equal(digits.length, 2 * (12 + 1024 + 16));
      assert.ok(!digits.includes(hex(utf8("secret"))));
    }
    await store.erase();
  });

  test("what was forgotten is under a key that is gone, and what stays under another", async () => {
    const store = fresh(KEY);
    await store.commit(changes({ a: "goes", b: "stays" }));
    const [before, key] = [await raw(store.name), await (await secretOf(store.name)).bytes()];
    await store.commit(changes({ a: null }), true);
    const after = await (await secretOf(store.name)).bytes();
    assert.equal(after.length, 32);
    assert.notEqual(hex(after), hex(key as Bytes));
    const rows = await raw(store.name);
    assert.deepEqual(
      rows.map(([name]) => name),
      ["", "b"],
    );
    const old = new Set(before.map(([, content]) => hex(content)));
    assert.ok(rows.every(([, content]) => !old.has(hex(content))));
    // Old blocks, put back, open no more.
    await raw(store.name, (all) => all.put(before.find(([name]) => name === "a")![1], "a"));
    await assert.rejects(new SealedRows(KEY, store.name).read(""), DamagedStoreError);
    await store.erase();
  });

  test("a page that dies while all is sealed anew leaves a store that opens", async () => {
    const store = fresh();
    await store.commit(changes({ a: "1" }));
    const [old, rows] = [await secretOf(store.name), await raw(store.name)];
    const before = new Uint8Array(await old.arrayBuffer());
    await store.commit(changes({ b: "2" }), true);
    const after = new Uint8Array(await (await secretOf(store.name)).arrayBuffer());
    // The file has both, and the rows are the new ones …
    await keep(store.name, before, after);
    assert.deepEqual(await shown(new SealedRows(undefined, store.name)), ["a=1", "b=2"]);
    // … or still the old ones.
    await raw(store.name, (all) => {
      all.clear();
      for (const [name, content] of rows) all.put(content, name);
    });
    const reopened = new SealedRows(undefined, store.name);
    assert.deepEqual(await shown(reopened), ["a=1"]);
    await reopened.commit(changes({ c: "3" }));
    assert.deepEqual(await shown(new SealedRows(undefined, store.name)), ["a=1", "c=3"]);
    // What was begun is finished: no secret of older rows stays.
    const last = new Uint8Array(await (await secretOf(store.name)).arrayBuffer());
    assert.ok(last.length === 32 && ![hex(before), hex(after)].includes(hex(last)));
    await store.erase();
  });

  test("what cannot be written leaves everything as it was", async () => {
    const store = fresh();
    await store.commit(changes({ a: "1" }));
    await withoutWriting(async () => {
      for (const renew of [false, true]) {
        await assert.rejects(store.commit(changes({ a: null }), renew), /Unavailable.*is full/);
        assert.deepEqual(await shown(store), ["a=1"]);
        assert.deepEqual(await shown(new SealedRows(undefined, store.name)), ["a=1"]);
      }
    });
    await store.commit(changes({ b: "2" }));
    assert.deepEqual(await shown(new SealedRows(undefined, store.name)), ["a=1", "b=2"]);
    assert.equal((await secretOf(store.name)).size, 32);
    await store.erase();
  });

  test("another tab reads and writes on after everything was sealed anew", async () => {
    const one = fresh();
    const other = new SealedRows(undefined, one.name);
    await one.commit(changes({ a: "1" }));
    assert.deepEqual(await shown(other), ["a=1"]);
    await one.commit(changes({ a: "2" }), true);
    assert.deepEqual(await shown(other), ["a=2"]);
    await other.commit(changes({ b: "3" }), true);
    await one.commit(changes({ c: "4" }));
    assert.deepEqual(await shown(other), ["a=2", "b=3", "c=4"]);
    // What was erased in one tab is not begun anew by another that knew it.
    await one.erase();
    await assert.rejects(other.commit(changes({ d: "5" })), LostStoreError);
    await assert.rejects(shown(other), LostStoreError);
    await one.commit(changes({ d: "5" }));
    assert.deepEqual(await shown(other), ["d=5"]);
    await one.erase();
    await other.erase();
    await other.commit(changes({ e: "6" }));
    assert.deepEqual(await shown(one), ["e=6"]);
    await one.erase();
  });

  test("a store whose database was made anew is lost until it is erased", async () => {
    const store = fresh(KEY);
    await store.commit(changes({ a: "1" }));
    await store.commit(changes({ a: null, b: "2" }), true);
    const secret = hex(await bytesIn(store.name));
    await drop(store.name);
    for (const opened of [store, new SealedRows(KEY, store.name)]) {
      await assert.rejects(opened.read(""), LostStoreError);
      await assert.rejects(opened.commit(changes({ c: "3" })), LostStoreError);
      await assert.rejects(opened.commit(changes({ c: "3" }), true), LostStoreError);
      opened.close();
      await assert.rejects(opened.read(""), LostStoreError);
    }
    assert.deepEqual(await raw(store.name), []);
    assert.equal(hex(await bytesIn(store.name)), secret);
    await store.erase();
    assert.deepEqual(await shown(store), []);
    await store.commit(changes({ d: "4" }));
    assert.deepEqual(await shown(new SealedRows(KEY, store.name)), ["d=4"]);
    await store.erase();
  });

  test("all that a page knew is lost when the browser removes database and file", async () => {
    const store = fresh();
    await store.commit(changes({ a: "1" }));
    await drop(store.name);
    await (await navigator.storage.getDirectory()).removeEntry(`${store.name}.key`);
    await assert.rejects(store.read(""), LostStoreError);
    store.close();
    await assert.rejects(store.commit(changes({ b: "2" })), LostStoreError);
    // Of it a page that is opened later knows nothing.
    const later = new SealedRows(undefined, store.name);
    assert.deepEqual(await shown(later), []);
    await later.commit(changes({ c: "3" }));
    assert.deepEqual(await shown(store), ["c=3"]);
    await store.erase();
  });

  test("a database that is made anew in the middle of a commit gets no row", async () => {
    const store = fresh();
    await store.commit(changes({ a: "1" }));
    for (const renew of [false, true]) {
      const { encrypt } = SubtleCrypto.prototype;
      SubtleCrypto.prototype.encrypt = async function (...given) {
        SubtleCrypto.prototype.encrypt = encrypt;
        await drop(store.name);
        return encrypt.apply(this, given);
      };
      try {
        await assert.rejects(store.commit(changes({ b: "2" }), renew), StoreUnavailableError);
      } finally {
        SubtleCrypto.prototype.encrypt = encrypt;
      }
      assert.deepEqual(await raw(store.name), []);
      await assert.rejects(store.read(""), LostStoreError);
      await store.erase();
      await store.commit(changes({ a: "1" }));
    }
    await store.erase();
  });

  test("a page that dies before its first rows are durable locks nobody out", async () => {
    const store = fresh();
    await withoutWriting(async () => {
      await assert.rejects(store.commit(changes({ a: "1" })), StoreUnavailableError);
    });
    // The file has a secret by now, and the database no row.
    assert.equal((await bytesIn(store.name)).length, 64);
    for (const opened of [store, new SealedRows(undefined, store.name)]) {
      assert.deepEqual(await shown(opened), []);
    }
    await store.commit(changes({ b: "2" }));
    assert.equal((await bytesIn(store.name)).length, 32);
    // Another dies when its rows are durable, and the file does not say so yet.
    await keep(store.name, new Uint8Array(32), await bytesIn(store.name));
    const next = new SealedRows(undefined, store.name);
    assert.deepEqual(await shown(next), ["b=2"]);
    await next.commit(changes({ c: "3" }));
    assert.equal((await bytesIn(store.name)).length, 32);
    await drop(store.name);
    await assert.rejects(new SealedRows(undefined, store.name).read(""), LostStoreError);
    await store.erase();
  });

  test("a tab that reads while another begins the store finds it, and no loss", async () => {
    for (let times = 0; times < 10; times++) {
      const [one, other] = [fresh(), () => new SealedRows(undefined, one.name)];
      let isDone = false;
      const begun = one.commit(changes({ a: "1" })).then(() => (isDone = true));
      while (!isDone) {
        const found = await shown(other());
        assert.ok(!found.length || found[0] === "a=1");
      }
      await begun;
      await one.erase();
    }
  });

  test("what the page's own files refuse is told by our name, and changes nothing", async () => {
    const files = FileSystemFileHandle.prototype as any;
    for (const name of ["QuotaExceededError", "NotAllowedError", "SecurityError"]) {
      const store = fresh();
      await without(StorageManager.prototype as any, "getDirectory", name, async () => {
        await assert.rejects(store.read(""), StoreUnavailableError);
        await assert.rejects(store.commit(changes({ a: "1" })), new RegExp(name));
      });
      await without(files, "createWritable", name, async () => {
        await assert.rejects(store.commit(changes({ a: "1" })), StoreUnavailableError);
        assert.deepEqual(await shown(store), []);
      });
      await store.commit(changes({ a: "1" }));
      await without(files, "createWritable", name, async () => {
        await store.commit(changes({ b: "2" })); // needs no file
        await assert.rejects(store.commit(changes({ a: null }), true), StoreUnavailableError);
      });
      await without(FileSystemDirectoryHandle.prototype as any, "removeEntry", name, async () => {
        await assert.rejects(store.erase(), StoreUnavailableError);
      });
      await without(files, "getFile", name, async () => {
        const other = new SealedRows(undefined, store.name);
        await assert.rejects(other.read(""), StoreUnavailableError);
      });
      assert.deepEqual(await shown(new SealedRows(undefined, store.name)), ["a=1", "b=2"]);
      await store.erase();
    }
  });

  test("a browser without files of a page's own is named, and nothing is stored", async () => {
    for (const [owner, method] of [
      [StorageManager.prototype, "getDirectory"],
      [FileSystemFileHandle.prototype, "createWritable"],
    ] as const) {
      const store = fresh();
      const own = Object.getOwnPropertyDescriptor(owner, method)!;
      delete (owner as any)[method];
      try {
        await assert.rejects(store.commit(changes({ a: "1" })), UnsupportedBrowserError);
        await assert.rejects(store.commit(changes({ a: "1" })), new RegExp(`lacks .*${method}`));
      } finally {
        Object.defineProperty(owner, method, own);
      }
      await assert.rejects(secretOf(store.name), /NotFoundError/);
      assert.deepEqual(await raw(store.name), []);
      await store.commit(changes({ a: "1" }));
      await store.erase();
    }
  });

  test("a secret that could not be removed is removed with the next commit", async () => {
    const store = fresh();
    await store.commit(changes({ a: "1" }));
    const { createWritable } = FileSystemFileHandle.prototype;
    let calls = 0;
    FileSystemFileHandle.prototype.createWritable = async function (...given) {
      if (++calls === 2) throw new DOMException("the disk is full", "QuotaExceededError");
      return createWritable.apply(this, given);
    };
    try {
      await assert.rejects(store.commit(changes({ a: null }), true), StoreUnavailableError);
    } finally {
      FileSystemFileHandle.prototype.createWritable = createWritable;
    }
    assert.equal((await bytesIn(store.name)).length, 64);
    await store.commit(changes({ b: "2" }));
    assert.equal((await bytesIn(store.name)).length, 32);
    assert.deepEqual(await shown(new SealedRows(undefined, store.name)), ["b=2"]);
    await store.erase();
  });

  test("a browser that has no database says so by our name, and may have one later", async () => {
    const store = fresh();
    const { open } = IDBFactory.prototype;
    IDBFactory.prototype.open = () => {
      throw new DOMException("not in this window", "SecurityError");
    };
    try {
      await assert.rejects(store.read(""), StoreUnavailableError);
    } finally {
      IDBFactory.prototype.open = open;
    }
    await store.commit(changes({ a: "1" }));
    assert.deepEqual(await shown(store), ["a=1"]);
    await store.erase();
  });

  test("another key opens nothing, and a lost one neither; erasing helps", async () => {
    for (const lose of [
      async (): Promise<Bytes> => KEY.map((byte) => byte + 1),
      async (name: string): Promise<Bytes> => {
        await keep(name, new Uint8Array(32));
        return KEY;
      },
      async (name: string): Promise<Bytes> => {
        await keep(name);
        return KEY;
      },
    ]) {
      const store = fresh(KEY);
      await store.commit(changes({ a: "1" }));
      const rows = await raw(store.name);
      const other = new SealedRows(await lose(store.name), store.name);
      await assert.rejects(other.read(""), WrongKeyError);
      await assert.rejects(other.commit(changes({ a: "2" })), WrongKeyError);
      await assert.rejects(other.commit(changes({ a: "2" }), true), WrongKeyError);
      const hexed = (all: [string, Bytes][]) => all.map(([name, row]) => [name, hex(row)]);
      assert.deepEqual(hexed(await raw(store.name)), hexed(rows));
      await other.erase();
      await other.commit(changes({ b: "1" }));
      assert.deepEqual(await shown(other), ["b=1"]);
      await other.erase();
    }
  });

  test("a row that was changed, or put in another's place, is damaged", async () => {
    const store = fresh();
    await store.commit(changes({ a: "1", b: "2" }));
    const rows = new Map(await raw(store.name));
    for (const content of [
      rows.get("b")!,
      rows.get("a")!.map((byte, at) => (at === 700 ? byte ^ 1 : byte)),
      rows.get("a")!.slice(1),
      new Uint8Array(),
    ]) {
      await raw(store.name, (all) => all.put(content, "a"));
      await assert.rejects(store.read("a"), DamagedStoreError);
      assert.deepEqual(await shown(store, "b"), ["b=2"]);
    }
    await store.erase();
  });

  test("a worker writes the secret in place, and a page reads on", async () => {
    const store = fresh();
    await store.commit(changes({ "from the page": "1", both: "2" }));
    const before = await bytesIn(store.name);
    const address = new URL("./chromium/worker.ts", import.meta.url);
    const worker = new Worker(address, { type: "module" });
    const found = await new Promise((resolve, reject) => {
      worker.onmessage = ({ data }) => resolve(data);
      worker.onerror = ({ message }) => reject(new Error(message));
      worker.postMessage(store.name);
    });
    assert.deepEqual(found, ["both", "from the page"]);
    assert.deepEqual(await shown(store), ["both=2", "from the worker=1"]);
    const after = new Uint8Array(await (await secretOf(store.name)).arrayBuffer());
    assert.equal(after.length, 32);
    assert.notEqual(hex(after), hex(before));
    worker.terminate();
    await store.erase();
    await assert.rejects(secretOf(store.name), /NotFoundError/);
  });
}
