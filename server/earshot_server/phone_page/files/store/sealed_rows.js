import { InvalidInputError } from "../protocol/errors.js";
import { compared, joined, utf8 } from "../protocol/wire.js";
import { DamagedStoreError, LostStoreError, StoreUnavailableError, WrongKeyError, } from "./interface.js";
const SECRET_BYTES = 32;
const IV_BYTES = 12;
const PADDED = 1024;
const ROWS = "rows";
const PROOF = "";
const NONE = new Uint8Array();
const BLANK = new Uint8Array(SECRET_BYTES);
export class SealedRows {
    name;
    #appKey;
    #database = null;
    #hasRows = false;
    #known = null;
    constructor(key = NONE, name = "earshot-phone") {
        if (key.length !== 0 && key.length !== SECRET_BYTES) {
            throw new InvalidInputError(`a key of ${key.length} bytes; it has ${SECRET_BYTES}`);
        }
        this.#appKey = key;
        this.name = name;
    }
    async read(prefix) {
        const [key, rows] = await this.#opened(prefix);
        return opened(key, rows);
    }
    async commit(changes, renew = false) {
        const [known, proofs] = await this.#opened(null);
        const isWhole = proofs.size > 0 && !this.#known?.isUnfinished;
        if (isWhole && !renew)
            return this.#write(proofs, await sealed(known, changes));
        const [, rows] = await this.#opened("");
        const kept = new Map([...(await opened(known, rows)), ...changes]);
        const before = rows.has(PROOF) ? await this.#secrets() : [BLANK];
        const secret = crypto.getRandomValues(new Uint8Array(SECRET_BYTES));
        const key = await this.#keyOf(secret);
        const fresh = await sealed(key, new Map([[PROOF, NONE], ...kept]));
        this.#known = null;
        await this.#keep([...before, secret]);
        await this.#write(rows, fresh);
        await this.#keep([secret]);
        this.#known = { proof: fresh.get(PROOF), key, isUnfinished: false };
        this.#hasRows = true;
    }
    async erase() {
        await this.#keep([]);
        await this.#transact("readwrite", (rows) => rows.clear());
        this.#known = null;
        this.#hasRows = false;
    }
    close() {
        this.#database?.then((database) => database.close(), () => { });
        this.#database = this.#known = null;
    }
    async #opened(prefix) {
        for (let tries = 3;; tries--) {
            try {
                return await this.#lookedAt(prefix);
            }
            catch (error) {
                if (tries === 1)
                    throw error;
            }
        }
    }
    async #lookedAt(prefix) {
        const rows = await this.#sealedRows(prefix);
        const proof = rows.get(PROOF);
        if (proof && this.#known && compared(this.#known.proof, proof) === 0) {
            return [this.#known.key, rows];
        }
        const secrets = await this.#secrets();
        if (proof === undefined) {
            const [first] = secrets;
            if (first ? first.some(Boolean) : this.#hasRows) {
                throw new LostStoreError("this phone's things are gone, its ledger as well: they were erased in another tab, or " +
                    "the browser removed them; erase what is left to begin anew, as a new phone");
            }
            return [await this.#keyOf(NONE), new Map()];
        }
        for (const secret of secrets) {
            const key = await this.#keyOf(secret);
            if ((await unsealed(key, PROOF, proof)) === null)
                continue;
            this.#known = { proof, key, isUnfinished: secrets.length > 1 };
            this.#hasRows = true;
            return [key, rows];
        }
        throw new WrongKeyError("this phone's things were sealed with another key, or it is gone");
    }
    async #sealedRows(prefix) {
        const found = new Map();
        await this.#transact("readonly", (rows) => {
            const range = prefix === null ? IDBKeyRange.only(PROOF) : IDBKeyRange.bound(prefix, `${prefix}\uffff`);
            for (const each of prefix ? [IDBKeyRange.only(PROOF), range] : [range]) {
                const names = rows.getAllKeys(each);
                const contents = rows.getAll(each);
                contents.onsuccess = () => names.result.forEach((name, at) => found.set(name, contents.result[at]));
            }
        });
        return found;
    }
    async #write(read, changes) {
        await this.#transact("readwrite", (rows) => {
            const proof = rows.get(PROOF);
            proof.onsuccess = () => {
                if (compared(proof.result ?? NONE, read.get(PROOF) ?? NONE) !== 0) {
                    return rows.transaction.abort();
                }
                for (const [name, content] of changes) {
                    if (content === null)
                        rows.delete(name);
                    else
                        rows.put(content, name);
                }
            };
        });
    }
    #transact(mode, ask) {
        return this.#used(async () => {
            const database = await this.#open();
            await new Promise((resolve, reject) => {
                const transaction = database.transaction(ROWS, mode, { durability: "strict" });
                transaction.oncomplete = () => resolve();
                transaction.onabort = () => reject(transaction.error ?? "the store has changed");
                ask(transaction.objectStore(ROWS));
            });
        });
    }
    #open() {
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
    async #used(work) {
        try {
            return await work();
        }
        catch (error) {
            this.close();
            throw new StoreUnavailableError(`this browser keeps nothing for the page now: ${error}`);
        }
    }
    async #keyOf(secret) {
        const ikm = await crypto.subtle.importKey("raw", secret, "HKDF", false, ["deriveKey"]);
        const info = utf8("earshot phone: key of the rows");
        const terms = { name: "HKDF", hash: "SHA-256", salt: this.#appKey, info };
        const kind = { name: "AES-GCM", length: 256 };
        return crypto.subtle.deriveKey(terms, ikm, kind, false, ["encrypt", "decrypt"]);
    }
    async #secrets() {
        const all = await this.#used(async () => {
            const folder = await navigator.storage.getDirectory();
            const file = await folder.getFileHandle(this.#fileName).catch((error) => {
                if (error.name === "NotFoundError")
                    return null;
                throw error;
            });
            return file ? new Uint8Array(await (await file.getFile()).arrayBuffer()) : NONE;
        });
        return Array.from({ length: Math.floor(all.length / SECRET_BYTES) }, (_, at) => all.slice(at * SECRET_BYTES, (at + 1) * SECRET_BYTES));
    }
    #keep(secrets) {
        const all = joined(...secrets);
        return this.#used(async () => {
            const folder = await navigator.storage.getDirectory();
            const file = await folder.getFileHandle(this.#fileName, { create: true });
            if (file.createSyncAccessHandle) {
                const access = await file.createSyncAccessHandle();
                try {
                    const blank = new Uint8Array(Math.max(0, access.getSize() - all.length));
                    const whole = joined(all, blank);
                    if (access.write(whole, { at: 0 }) < whole.length)
                        throw new Error("no space is left");
                    access.flush();
                    access.truncate(all.length);
                    access.flush();
                }
                finally {
                    access.close();
                }
            }
            else if (all.length) {
                const stream = await file.createWritable();
                await stream.write(all);
                await stream.close();
            }
            else {
                await folder.removeEntry(this.#fileName);
            }
        });
    }
    get #fileName() {
        return `${this.name}.key`;
    }
}
async function opened(key, rows) {
    const found = await Promise.all([...rows].map(async ([name, row]) => [name, await unsealed(key, name, row)]));
    const content = new Map();
    for (const [name, plain] of found) {
        if (plain === null)
            throw new DamagedStoreError(`row '${name}' is not what was written`);
        if (name !== PROOF)
            content.set(name, plain);
    }
    return content;
}
async function sealed(key, changes) {
    const found = await Promise.all([...changes].map(async ([name, content]) => {
        if (content === null)
            return [name, null];
        const size = 4 + content.length;
        const padded = new Uint8Array(Math.ceil(size / PADDED) * PADDED);
        new DataView(padded.buffer).setUint32(0, content.length);
        padded.set(content, 4);
        const iv = crypto.getRandomValues(new Uint8Array(IV_BYTES));
        const terms = { name: "AES-GCM", iv, additionalData: utf8(name) };
        const cipher = await crypto.subtle.encrypt(terms, key, padded);
        return [name, joined(iv, new Uint8Array(cipher))];
    }));
    return new Map(found);
}
async function unsealed(key, name, row) {
    const terms = {
        name: "AES-GCM",
        iv: row.slice(0, IV_BYTES),
        additionalData: utf8(name),
    };
    try {
        const plain = await crypto.subtle.decrypt(terms, key, row.subarray(IV_BYTES));
        return new Uint8Array(plain, 4, new DataView(plain).getUint32(0)).slice();
    }
    catch {
        return null;
    }
}
