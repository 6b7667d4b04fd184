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
// Not every browser has them; where they are missing, they are not asked for either.
const policy = trustedTypes?.createPolicy("earshot", rules) ?? rules;

/** Return the address of one of the page's scripts, beside this one, as browsers trust it. */
export function ownScript(name: OwnScript): string {
  return policy.createScriptURL(`${name}.js`);
}
