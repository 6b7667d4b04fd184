const rules = { createScriptURL: (name) => new URL(name, import.meta.url).href };
const { trustedTypes } = globalThis;
const policy = trustedTypes?.createPolicy("earshot", rules) ?? rules;
export function ownScript(name) {
    return policy.createScriptURL(`${name}.js`);
}
