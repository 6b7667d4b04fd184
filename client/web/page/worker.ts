/** Worker with the page's phone, which the page calls by messages. */

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

/** An invitation, without its code once that was used. */
type Opening = Omit<PhoneLink, "invitation"> & Partial<PhoneLink>;

let phone: Client;
/** The newest opening, which waits for those before it, and the newest call of `hear`. */
let opened: Promise<unknown> = Promise.resolve();
let heard: Promise<unknown> = Promise.resolve();

/** Calls that the page may make, by name. */
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
  /** Erase the phone of an invitation, even one that cannot be opened; needs no encoder. */
  async erase(link: Opening): Promise<void> {
    // Otherwise sound in progress would be stored after erasing.
    await heard;
    await openPhone({ ...link, encoder: {} as Encoder }).erase();
  },
};

/** Calls that the page may make. */
export type Work = typeof work;

/** A request of the page. */
export interface Asked {
  readonly number: number;
  readonly name: keyof Work;
  readonly given: readonly unknown[];
}

/** A response: a result, or an error's message, with its name if it is the phone's own. */
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
