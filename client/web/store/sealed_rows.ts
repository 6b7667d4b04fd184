/**
 * A store in IndexedDB whose rows are sealed by AES-256-GCM.
 *
 * The key is derived from a secret in a file of the page's own file system, and from the app's key
 * if there is one. Databases do not overwrite what they remove, but a file can be overwritten: to
 * remove rows for good, the others are sealed again under a new secret. All cryptography is done
 * before a transaction opens, since a transaction ends as soon as it waits for anything else.
 *
 * While rows are sealed again, the file has both secrets, the older one first; for the very first
 * rows, a blank takes the place of the older one. So if the file begins with a secret and the
 * database has no rows, the browser has removed them.
 */

import { InvalidInputError, UnsupportedBrowserError } from "../protocol/errors.ts";
import { type Bytes, compared, joined, utf8 } from "../protocol/wire.ts";
import {
  type Changes,
  DamagedStoreError,
  LostStoreError,
  type Store,
  StoreUnavailableError,
  WrongKeyError,
} from "./interface.ts";

const SECRET_BYTES = 32;
const IV_BYTES = 12;
/** Contents are padded to multiples of this, so that lengths do not reveal labels. */
const PADDED = 1024;
const ROWS = "rows";
/** Row that identifies the key of the others; no other has an empty name. */
const PROOF = "";
const NONE: Bytes = new Uint8Array();
/** Begins the file of a store whose first rows are not durable yet. */
const BLANK: Bytes = new Uint8Array(SECRET_BYTES);

type Sealed = Map<string, Bytes>;

/** A file of the page's own file system; TypeScript's types lack what only workers have. */
interface OwnFile extends FileSystemFileHandle {
  createSyncAccessHandle?(): Promise<{
    getSize(): number;
    write(data: Bytes, options: { readonly at: number }): number;
    truncate(size: number): void;
    flush(): void;
    close(): void;
  }>;
}

/** A `Store` in this browser's IndexedDB, which only pages of this origin open. */
export class SealedRows implements Store {
  readonly name: string;
  readonly #appKey: Bytes;
  #database: Promise<IDBDatabase> | null = null;
  /** Whether this object has seen rows and not erased them. */
  #hasRows = false;
  /** The key of the rows with this proof, and whether the file still has one of older rows. */
  #known: {
    readonly proof: Bytes;
    readonly key: CryptoKey;
    readonly isUnfinished: boolean;
  } | null = null;

  /**
   * Name a store; nothing is opened yet.
   *
   * `key`: 32 secret bytes from the platform's key store; without it, the browser's files are
   * enough to read the store.
   * Throws `InvalidInputError`: the key has another length.
   */
  constructor(key: Bytes = NONE, name = "earshot-phone") {
    if (key.length !== 0 && key.length !== SECRET_BYTES) {
      throw new InvalidInputError(`a key of ${key.length} bytes; it has ${SECRET_BYTES}`);
    }
    this.#appKey = key;
    this.name = name;
  }

  async read(prefix: string): Promise<ReadonlyMap<string, Bytes>> {
    const [key, rows] = await this.#opened(prefix);
    return opened(key, rows);
  }

  async commit(changes: Changes, renew = false): Promise<void> {
    const [known, proofs] = await this.#opened(null);
    const isWhole = proofs.size > 0 && !this.#known?.isUnfinished;
    if (isWhole && !renew) return this.#write(proofs, await sealed(known, changes));
    const [, rows] = await this.#opened("");
    const kept = new Map<string, Bytes | null>([...(await opened(known, rows)), ...changes]);
    const before = rows.has(PROOF) ? await this.#secrets() : [BLANK];
    const secret = crypto.getRandomValues(new Uint8Array(SECRET_BYTES));
    const key = await this.#keyOf(secret);
    const fresh = await sealed(key, new Map([[PROOF, NONE], ...kept]));
    // However this ends, the file has the secret of the rows; the next call looks which one.
    this.#known = null;
    await this.#keep([...before, secret]);
    await this.#write(rows, fresh);
    await this.#keep([secret]);
    this.#known = { proof: fresh.get(PROOF)!, key, isUnfinished: false };
    this.#hasRows = true;
  }

  async erase(): Promise<void> {
    await this.#keep([]);
    await this.#transact("readwrite", (rows) => rows.clear());
    this.#known = null;
    this.#hasRows = false;
  }

  close(): void {
    this.#database?.then(
      (database) => database.close(),
      () => {},
    );
    this.#database = this.#known = null;
  }

  /**
   * Return sealed rows, including the proof, and their key; with null only the proof.
   *
   * A new store has no rows; its key is arbitrary.
   */
  async #opened(prefix: string | null): Promise<[CryptoKey, Sealed]> {
    for (let tries = 3; ; tries--) {
      try {
        return await this.#lookedAt(prefix);
      } catch (error) {
        // Another page may have made or resealed the store between the reads of rows and file.
        if (tries === 1) throw error;
      }
    }
  }

  async #lookedAt(prefix: string | null): Promise<[CryptoKey, Sealed]> {
    const rows = await this.#sealedRows(prefix);
    const proof = rows.get(PROOF);
    if (proof && this.#known && compared(this.#known.proof, proof) === 0) {
      return [this.#known.key, rows];
    }
    const secrets = await this.#secrets();
    if (proof === undefined) {
      const [first] = secrets;
      if (first ? first.some(Boolean) : this.#hasRows) {
        throw new LostStoreError(
          "this phone's data is gone, ledger included: erased in another tab, or removed by the " +
            "browser; erase the rest to start over as a new phone",
        );
      }
      return [await this.#keyOf(NONE), new Map()];
    }
    for (const secret of secrets) {
      const key = await this.#keyOf(secret);
      if ((await unsealed(key, PROOF, proof)) === null) continue;
      this.#known = { proof, key, isUnfinished: secrets.length > 1 };
      this.#hasRows = true;
      return [key, rows];
    }
    throw new WrongKeyError("this phone's data was sealed with another key, or the key is gone");
  }

  async #sealedRows(prefix: string | null): Promise<Sealed> {
    const found: Sealed = new Map();
    await this.#transact("readonly", (rows) => {
      const range =
        prefix === null ? IDBKeyRange.only(PROOF) : IDBKeyRange.bound(prefix, `${prefix}\uffff`);
      for (const each of prefix ? [IDBKeyRange.only(PROOF), range] : [range]) {
        const names = rows.getAllKeys(each);
        const contents = rows.getAll(each);
        contents.onsuccess = () =>
          names.result.forEach((name, at) => found.set(name as string, contents.result[at]));
      }
    });
    return found;
  }

  /** Write rows if the store still has the proof of those that were read, otherwise none. */
  async #write(read: Sealed, changes: Changes): Promise<void> {
    await this.#transact("readwrite", (rows) => {
      const proof = rows.get(PROOF);
      proof.onsuccess = () => {
        // The browser may have recreated the database meanwhile.
        if (compared(proof.result ?? NONE, read.get(PROOF) ?? NONE) !== 0) {
          return rows.transaction.abort();
        }
        for (const [name, content] of changes) {
          if (content === null) rows.delete(name);
          else rows.put(content, name);
        }
      };
    });
  }

  /** Make requests in one transaction, and wait until it is durable. */
  #transact(mode: IDBTransactionMode, ask: (rows: IDBObjectStore) => void): Promise<void> {
    return this.#used(async () => {
      const database = await this.#open();
      await new Promise<void>((resolve, reject) => {
        const transaction = database.transaction(ROWS, mode, { durability: "strict" });
        transaction.oncomplete = () => resolve();
        transaction.onabort = () => reject(transaction.error ?? "the store has changed");
        ask(transaction.objectStore(ROWS));
      });
    });
  }

  #open(): Promise<IDBDatabase> {
    this.#database ??= new Promise((resolve, reject) => {
      const request = indexedDB.open(this.name, 1);
      request.onupgradeneeded = () => request.result.createObjectStore(ROWS);
      request.onsuccess = () => {
        const database = request.result;
        database.onversionchange = database.onclose = () => this.close();
        resolve(database);
      };
      request.onerror = () => reject(request.error);
    });
    return this.#database;
  }

  /** Use the browser's storage; if that fails, close it and throw `StoreUnavailableError`. */
  async #used<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      this.close();
      if (error instanceof UnsupportedBrowserError) throw error;
      throw new StoreUnavailableError(`the browser's storage is unavailable: ${error}`);
    }
  }

  async #keyOf(secret: Bytes): Promise<CryptoKey> {
    const ikm = await crypto.subtle.importKey("raw", secret, "HKDF", false, ["deriveKey"]);
    const info = utf8("earshot phone: key of the rows");
    const terms = { name: "HKDF", hash: "SHA-256", salt: this.#appKey, info };
    const kind = { name: "AES-GCM", length: 256 };
    return crypto.subtle.deriveKey(terms, ikm, kind, false, ["encrypt", "decrypt"]);
  }

  /** Return the secrets in the file: none if there is no file, and two while rows are sealed. */
  async #secrets(): Promise<readonly Bytes[]> {
    const all = await this.#used(async () => {
      const folder = await ownFolder();
      // Does not create the file, for which there may be no space.
      const file = await folder.getFileHandle(this.#fileName).catch((error) => {
        if (error.name === "NotFoundError") return null;
        throw error;
      });
      return file ? new Uint8Array(await (await file.getFile()).arrayBuffer()) : NONE;
    });
    return Array.from({ length: Math.floor(all.length / SECRET_BYTES) }, (_, at) =>
      all.slice(at * SECRET_BYTES, (at + 1) * SECRET_BYTES),
    );
  }

  /** Overwrite the secrets in the file, and wait until they are on the disk. */
  #keep(secrets: readonly Bytes[]): Promise<void> {
    const all = joined(...secrets);
    return this.#used(async () => {
      const folder = await ownFolder();
      const { prototype } = FileSystemFileHandle;
      if (!("createSyncAccessHandle" in prototype || "createWritable" in prototype)) {
        throw new UnsupportedBrowserError("createWritable; outside a worker, Safari has it from 26");
      }
      const file: OwnFile = await folder.getFileHandle(this.#fileName, { create: true });
      // Only a worker can write in place. In a page, old secrets stay until the disk reuses them.
      if (file.createSyncAccessHandle) {
        const access = await file.createSyncAccessHandle();
        try {
          const blank = new Uint8Array(Math.max(0, access.getSize() - all.length));
          const whole = joined(all, blank);
          if (access.write(whole, { at: 0 }) < whole.length) throw new Error("no space is left");
          access.flush();
          access.truncate(all.length);
          access.flush();
        } finally {
          access.close();
        }
      } else if (all.length) {
        const stream = await file.createWritable();
        await stream.write(all);
        await stream.close();
      } else {
        // Writing, even nothing, would need space.
        await folder.removeEntry(this.#fileName);
      }
    });
  }

  get #fileName(): string {
    return `${this.name}.key`;
  }
}

function ownFolder(): Promise<FileSystemDirectoryHandle> {
  const storage = globalThis.navigator?.storage;
  if (storage?.getDirectory) return storage.getDirectory();
  throw new UnsupportedBrowserError("navigator.storage.getDirectory");
}

async function opened(key: CryptoKey, rows: Sealed): Promise<Map<string, Bytes>> {
  const found = await Promise.all(
    [...rows].map(async ([name, row]) => [name, await unsealed(key, name, row)] as const),
  );
  const content = new Map<string, Bytes>();
  for (const [name, plain] of found) {
    if (plain === null) throw new DamagedStoreError(`row '${name}' is not what was written`);
    if (name !== PROOF) content.set(name, plain);
  }
  return content;
}

async function sealed(key: CryptoKey, changes: Changes): Promise<Map<string, Bytes | null>> {
  const found = await Promise.all(
    [...changes].map(async ([name, content]) => {
      if (content === null) return [name, null] as const;
      const size = 4 + content.length;
      const padded = new Uint8Array(Math.ceil(size / PADDED) * PADDED);
      new DataView(padded.buffer).setUint32(0, content.length);
      padded.set(content, 4);
      const iv = crypto.getRandomValues(new Uint8Array(IV_BYTES));
      const terms = { name: "AES-GCM", iv, additionalData: utf8(name) };
      const cipher = await crypto.subtle.encrypt(terms, key, padded);
      return [name, joined(iv, new Uint8Array(cipher))] as const;
    }),
  );
  return new Map(found);
}

/** Return a row's content; null if it was not sealed under this key and name. */
async function unsealed(key: CryptoKey, name: string, row: Bytes): Promise<Bytes | null> {
  const terms = {
    name: "AES-GCM",
    iv: row.slice(0, IV_BYTES),
    additionalData: utf8(name),
  };
  try {
    const plain = await crypto.subtle.decrypt(terms, key, row.subarray(IV_BYTES));
    return new Uint8Array(plain, 4, new DataView(plain).getUint32(0)).slice();
  } catch {
    return null;
  }
}
