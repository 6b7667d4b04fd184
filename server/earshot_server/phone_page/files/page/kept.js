import { readLink } from "../phone/link.js";
import { hex } from "../protocol/wire.js";
const KEY = "earshot-page";
export function kept() {
    try {
        const found = JSON.parse(localStorage.getItem(KEY) ?? "{}");
        return typeof found === "object" && found !== null ? found : {};
    }
    catch {
        return {};
    }
}
export function keep(more) {
    localStorage.setItem(KEY, JSON.stringify({ ...kept(), ...more }));
}
export function keepNothing() {
    localStorage.clear();
}
export function acceptedLink() {
    const { link } = kept();
    return link ? tried(link) : null;
}
export function tried(fragment) {
    try {
        return readLink(fragment);
    }
    catch {
        return null;
    }
}
export function grouped(key) {
    return hex(key).replace(/(.{8})(?!$)/g, "$1 ");
}
