/** The key under which the phone is sealed, from Keychain or Keystore through Capacitor's bridge. */

/** Native part of this app: `get` draws 32 bytes the first time, and returns the same ever after. */
interface DeviceKeyPlugin {
  get(): Promise<{ readonly key: string }>;
}

interface Bridge {
  readonly Plugins?: { readonly DeviceKey?: DeviceKeyPlugin };
}

/** An app without its native part: it keeps nothing, since it could not keep it safe. */
export class NoDeviceKeyError extends Error {
  override readonly name = "NoDeviceKeyError";
}

/** Return the device's key, 32 bytes; throw `NoDeviceKeyError` where the app has none to give. */
export async function deviceKey(): Promise<Uint8Array<ArrayBuffer>> {
  // Capacitor puts plugins there before the page's own scripts run; nothing has to be imported.
  const { Capacitor } = globalThis as { readonly Capacitor?: Bridge };
  const plugin = Capacitor?.Plugins?.DeviceKey;
  if (plugin === undefined) {
    throw new NoDeviceKeyError("no key: this app was built without its plugin DeviceKey");
  }
  const { key } = await plugin.get();
  return Uint8Array.from(atob(key), (letter) => letter.charCodeAt(0));
}
