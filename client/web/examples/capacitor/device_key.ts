/** The key under which the phone is sealed, from Keychain or Keystore through Capacitor's bridge. */

/** Native part of this app: `get` draws 32 bytes once, and always returns the same. */
interface DeviceKeyPlugin {
  get(): Promise<{ readonly key: string }>;
}

interface Bridge {
  readonly Plugins?: { readonly DeviceKey?: DeviceKeyPlugin };
}

/** An app without its native part, which stores nothing because it has no key. */
export class NoDeviceKeyError extends Error {
  override readonly name = "NoDeviceKeyError";
}

/** Return the device's key, 32 bytes; throw `NoDeviceKeyError` if the app has no plugin for it. */
export async function deviceKey(): Promise<Uint8Array<ArrayBuffer>> {
  // Capacitor sets its plugins before the page's scripts run; no import is needed.
  const { Capacitor } = globalThis as { readonly Capacitor?: Bridge };
  const plugin = Capacitor?.Plugins?.DeviceKey;
  if (plugin === undefined) {
    throw new NoDeviceKeyError("no key: this app was built without its plugin DeviceKey");
  }
  const { key } = await plugin.get();
  return Uint8Array.from(atob(key), (letter) => letter.charCodeAt(0));
}
