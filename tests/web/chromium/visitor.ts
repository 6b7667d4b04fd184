/** A phone whose store is the browser's, and the server that it visits, both in one page. */

import { openPhone } from "../../../client/web/phone/client.ts";
import { LabelHierarchy } from "../../../client/web/protocol/environments.ts";
import { points } from "../phones.ts";
import { Server } from "../server.ts";
import { of, vectors } from "../vectors.ts";

const { phones } = await vectors("refused");
const given = phones.find((each: any) => each.why === "nothing: the next part");

/** Two tasks of one phase, one after the other. */
export const tasks = given.tasks.map(of);
/** A server that has nothing to do yet. */
export const server = new Server();
export const phone = openPhone({
  server: "https://earshot.example.org",
  invitation: "code",
  leader: of(given.leaders[0]),
  helper: of(given.helpers[0]),
  encoder: points(),
  hierarchy: LabelHierarchy.flat(["a", "b"]),
  fetch: server.fetch,
  pause: async () => {},
  clock: () => 1.8e9,
});

const samples = Float32Array.from({ length: 8000 }, (_, at) => Math.sin(at) / 2);

/** Everything that a page does with its phone. */
const works: Record<string, () => Promise<unknown>> = {
  hear: () => phone.hear({ channels: [samples], rate: 8000 }),
  forget: () => phone.forget(1),
  visit: async () => (await phone.visit()).event,
  ledger: async () => (await phone.ledger()).length,
  recordings: async () => (await phone.recordings()).length,
  erase: () => phone.erase(),
};

/** Do something, and return what came of it: a number, an event or the name of an error. */
export async function tried(work: string): Promise<unknown> {
  try {
    return await works[work]!();
  } catch (error) {
    return (error as Error).name;
  }
}
