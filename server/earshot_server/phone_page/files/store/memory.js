let made = 0;
export class MemoryStore {
    name = `earshot-phone in memory ${++made}`;
    #rows = new Map();
    async read(prefix) {
        const found = [...this.#rows].filter(([name]) => name.startsWith(prefix));
        found.sort(([one], [other]) => (one < other ? -1 : 1));
        return new Map(found.map(([name, content]) => [name, content.slice()]));
    }
    async commit(changes) {
        const rows = new Map(this.#rows);
        for (const [name, content] of changes) {
            if (content === null)
                rows.delete(name);
            else
                rows.set(name, content.slice());
        }
        this.#rows = rows;
    }
    async erase() {
        this.#rows = new Map();
    }
    close() { }
}
