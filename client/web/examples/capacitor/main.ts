/** The app's page: a phone whose files lie inside the app, sealed under a key of the device. */

import { type Client, openPhone } from "earshot-phone";
import { listen, shippedEncoder } from "earshot-phone/hearing";

import { deviceKey } from "./device_key.ts";
import { HELPER, LEADER, SERVER } from "./operators.ts";

function part<T extends HTMLElement>(id: string): T {
  return document.querySelector<T>(`#${id}`)!;
}

function say(text: string): void {
  part("said").textContent = text;
}

function fail(error: unknown): void {
  say(String(error));
}

function press(id: string, work: () => Promise<void>): void {
  part(id).addEventListener("click", () => void work().catch(fail));
}

let phone: Client;
let heard = 0;
let next = 0;

/** Open the phone; nothing is sent. */
async function open(): Promise<void> {
  const encoder = await shippedEncoder(await fetch("contrast-3.tflite"));
  const operators = { server: SERVER, leader: LEADER, helper: HELPER };
  phone = openPhone({ ...operators, encoder, key: await deviceKey() });
  const { length } = await phone.recordings();
  say(`${length} recordings are kept on this phone.`);
}

/** Visit the server now, and again after the seconds that the visit returns. */
async function visit(): Promise<void> {
  clearTimeout(next);
  const { event, detail, seconds } = await phone.visit();
  say(`${event}: ${detail}`);
  next = window.setTimeout(() => void visit().catch(fail), 1000 * seconds);
}

press("listen", async () => {
  void navigator.storage.persist(); // or the system may remove the phone, its ledger included
  heard = await phone.hear(await listen("earshot-phone/page/worklet.js"));
  const { choices } = await phone.poll();
  part("choice").replaceChildren(...choices.map((each) => new Option(each, each)));
  say("Heard. The sound is forgotten; 128 numbers are kept.");
});

press("label", async () => {
  const { value } = part<HTMLSelectElement>("choice");
  await phone.label(heard, value);
  say(`Kept: ${value}.`);
});

press("join", async () => {
  // The code is not stored: a phone that lost its data must not silently return as a new one.
  await phone.enrol(part<HTMLInputElement>("code").value);
  await visit();
});

press("left", async () => {
  const [ledger, standing] = [await phone.ledger(), await phone.standing()];
  part("more").textContent = JSON.stringify({ ledger, standing }, null, 1);
});

press("erase", async () => {
  clearTimeout(next);
  // Erased in any case: an unreachable server keeps only a public key that is no longer used.
  await phone.leave().catch(fail);
  await phone.erase();
  say("Everything on this phone is forgotten.");
});

await open().catch(fail);
