/** The phone of the page, in a worker: the page asks by messages, and only draws. */

import { shippedEncoder } from "../hearing.ts";
import {
  type Client,
  EarshotError,
  type Encoder,
  type Limits,
  openPhone,
  type PhoneLink,
  type Sound,
} from "../index.ts";
import { summaryOf } from "./results.ts";

/** An invitation, without its code where that has served. */
type Opening = Omit<PhoneLink, "invitation"> & Partial<PhoneLink>;

let phone: Client;
/** The last that is opened, one after the other, and the last sound that is taken in. */
let opened: Promise<unknown> = Promise.resolve();
let heard: Promise<unknown> = Promise.resolve();

/** Everything that the page may ask for, by name. */
const work = {
  /** Open the phone of an invitation, with the encoder at an address; nothing is sent. */
  open(link: Opening, encoder: string, policy: Partial<Limits>): Promise<void> {
    const opening = opened.then(async () => {
      phone = openPhone({ ...link, encoder: await shippedEncoder(await fetch(encoder)), policy });
    });
    opened = opening.catch(() => {});
    return opening;
  },
  hear(sound: Sound): Promise<number> {
    const hearing = phone.hear(sound);
    heard = hearing.catch(() => {});
    return hearing;
  },
  label: (recording: number, choice: string) => phone.label(recording, choice),
  poll: async () => (await phone.poll()).groups,
  recordings: () => phone.recordings(),
  forget: (recording?: number) => phone.forget(recording),
  ledger: () => phone.ledger(),
  standing: () => phone.standing(),
  refusal: () => phone.refusal(),
  visit: () => phone.visit(),
  async ending() {
    const ending = await phone.ending();
    return ending && summaryOf(ending);
  },
  told: () => phone.told(),
  export: () => phone.export(),
  leave: () => phone.leave(),
  /** Erase the phone of an invitation, also one that cannot be opened; no encoder is asked. */
  async erase(link: Opening): Promise<void> {
    // What is being heard would otherwise be kept afterwards.
    await heard;
    await openPhone({ ...link, encoder: {} as Encoder }).erase();
  },
};

/** Everything that the page may ask for. */
export type Work = typeof work;

/** A request of the page. */
export interface Asked {
  readonly number: number;
  readonly name: keyof Work;
  readonly given: readonly unknown[];
}

/** The response to it: a result, or the text of an error, and its name if it is the phone's own. */
export interface Told {
  readonly number: number;
  readonly done?: unknown;
  readonly error?: { readonly name: string | null; readonly message: string };
}

async function answer({ number, name, given }: Asked): Promise<Told> {
  try {
    const call = work[name] as (...given: readonly unknown[]) => unknown;
    return { number, done: await call(...given) };
  } catch (error) {
    const isOurs = error instanceof EarshotError;
    const [kind, message] = isOurs ? [error.name, error.message] : [null, String(error)];
    return { number, error: { name: kind, message } };
  }
}

addEventListener("message", ({ data }: MessageEvent<Asked>) => {
  void answer(data).then((told) => postMessage(told));
});
