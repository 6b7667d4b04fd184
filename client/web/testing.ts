/** `earshot-phone/testing`: a store for an app's own tests, in Node or in a page. */

export { MemoryStore } from "./store/memory.ts";
