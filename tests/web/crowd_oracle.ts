/** Phones of a test in Python, each with a store in memory, which visit a real server. */

import { type Client, openPhone } from "../../client/web/phone/client.ts";
import { LabelHierarchy } from "../../client/web/protocol/environments.ts";
import { hex } from "../../client/web/protocol/wire.ts";
import { MemoryStore } from "../../client/web/store/memory.ts";
import { answering } from "./line.ts";
import { points } from "./phones.ts";
import { of } from "./vectors.ts";

const phones: Client[] = [];
const WITHOUT = Object.fromEntries(
  ["", "yearly_", "lifetime_"].flatMap((span) =>
    ["", "phone_"].flatMap((unit) =>
      ["epsilon", "delta"].map((what) => [`largest_${span}${unit}${what}`, Infinity]),
    ),
  ),
);

await answering({
  /** Open a phone that has no budget, and let it hear points, each with its label. */
  async open(about: any, heard: number[][], labels: (string | null)[]) {
    const { server, invitation, leader, helper, encoder, classes } = about;
    const dimensions = heard[0]!.length;
    const phone = openPhone({
      ...{ server, invitation, leader: of(leader), helper: of(helper) },
      encoder: points(encoder, dimensions),
      hierarchy: LabelHierarchy.flat(classes),
      policy: { ...WITHOUT, least_phones: 3, any_delta: true },
      store: new MemoryStore(),
    });
    for (const [at, point] of heard.entries()) {
      // A second whose beginning is the point, and that has no offset: as the encoder hears it.
      const samples = new Float32Array(8000);
      samples.set(point.map((value) => value / 2));
      samples.set(
        point.map((value) => -value / 2),
        4000,
      );
      const recording = await phone.hear({ channels: [samples], rate: 8000 });
      const label = labels[at] ?? null;
      if (label !== null) await phone.label(recording, label);
    }
    return phones.push(phone) - 1;
  },
  visit: (phone: number) => phones[phone]!.visit(),
  /** The type and the phase of the ending that is to be told. */
  async ending(phone: number) {
    const ending = await phones[phone]!.ending();
    return ending && "phase" in ending ? [ending.type, hex(ending.phase!)] : null;
  },
  steps: async (phone: number) => (await phones[phone]!.ledger()).map(({ step }) => step),
  leave: (phone: number) => phones[phone]!.leave(),
});
