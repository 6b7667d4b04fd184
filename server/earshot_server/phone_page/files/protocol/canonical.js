import { joined, pack } from "./wire.js";
export function canonical(field, value) {
    return pack(field.write(value, true), true);
}
export async function sha256(...parts) {
    return new Uint8Array(await crypto.subtle.digest("SHA-256", joined(...parts)));
}
