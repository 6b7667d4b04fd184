import { ownScript } from "./scripts.js";
export class PhoneError extends Error {
    constructor(name, message) {
        super(message);
        this.name = name;
    }
}
export class PhoneLine {
    #waiting = new Map();
    #worker = null;
    #number = 0;
    async ask(name, ...given) {
        const number = this.#number++;
        const told = await new Promise((resolve) => {
            this.#waiting.set(number, resolve);
            this.#worker ??= this.#begun();
            this.#worker.postMessage({ number, name, given });
        });
        if (told.error)
            throw new PhoneError(told.error.name, told.error.message);
        return told.done;
    }
    #begun() {
        const worker = new Worker(ownScript("worker"), { type: "module" });
        worker.addEventListener("message", ({ data }) => {
            this.#waiting.get(data.number)?.(data);
            this.#waiting.delete(data.number);
        });
        worker.addEventListener("error", ({ message }) => {
            const error = { name: "Error", message: message || "the phone's script did not load" };
            for (const [number, tell] of this.#waiting)
                tell({ number, error });
            this.#waiting.clear();
        });
        return worker;
    }
}
