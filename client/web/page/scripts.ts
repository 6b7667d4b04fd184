/** Addresses of the page's own scripts: with Trusted Types, no other text becomes a script. */

/** Scripts that the page starts by address. */
type OwnScript = "worker" | "service";

interface Policies {
  createPolicy(
    name: string,
    rules: { createScriptURL: (text: string) => string },
  ): { createScriptURL(text: string): string };
}

const rules = { createScriptURL: (name: string) => new URL(name, import.meta.url).href };
const { trustedTypes } = globalThis as { trustedTypes?: Policies };
// Browsers without Trusted Types do not require them.
const policy = trustedTypes?.createPolicy("earshot", rules) ?? rules;

/** Return the trusted address of one of the page's scripts, which are all in this folder. */
export function ownScript(name: OwnScript): string {
  return policy.createScriptURL(`${name}.js`);
}
