import { LEVEL, placesOf } from "../protocol/phases/places.js";
import { hex } from "../protocol/wire.js";
export function summaryOf(ending) {
    const [phase, type] = [hex(ending.phase), ending.type];
    if (ending.type === "failed") {
        return { phase, type, clear: [], doubtful: 0, reason: ending.reason };
    }
    if (ending.type === "statistics") {
        const { label_names: names, contacts, p_values: chances } = ending;
        const clear = names.flatMap((name, at) => (chances[at] ?? 1) <= LEVEL ? [[name, contacts[at]]] : []);
        return { phase, type, clear, doubtful: names.length - clear.length, reason: null };
    }
    const names = placesOf(ending).names;
    const found = names.filter((name) => name !== null);
    const clear = [...new Set(found)].map((name) => [name, null]);
    return { phase, type, clear, doubtful: names.length - found.length, reason: null };
}
