/** Choices of polls about a recording, and the everyday environments that they offer by default. */

import { type Groups, LabelHierarchy } from "../protocol/environments.ts";
import { InvalidInputError } from "../protocol/errors.ts";

/** A choice that no poll offers; the message lists the accepted ones. */
export class UnknownLabelError extends InvalidInputError {
  override name = "UnknownLabelError";
}

const ENVIRONMENTS = `
public transport:train,underground,tram,bus,train station,bus stop,airport,ferry
car:car,taxi,car park
street:traffic,siren,pedestrian street,crossing,construction site
nature:park,forest,birds,rain,wind,waves,beach,garden
gastronomy:café,restaurant,bar,canteen,beer garden
home:living room,kitchen,stairwell,visiting friends
office:desk,open-plan office,meeting room,classroom,library
shop:supermarket,shopping centre,bakery,market,hairdresser
event:crowd,concert,cinema,stadium,party,worship
workshop:machine hum,factory,garage,laboratory,warehouse
sport:gym,swimming pool,sports hall,playing field`;

/** Return the default environments of everyday life, the same as Python's. */
export function defaultHierarchy(): LabelHierarchy {
  const groups: Groups = ENVIRONMENTS.trim()
    .split("\n")
    .map((each) => each.split(":") as [string, string])
    .map(([name, choices]) => [name, choices.split(",")]);
  return new LabelHierarchy(groups);
}

/**
 * Refuse a choice that none of the hierarchies has; the last one is the present poll's.
 *
 * Throws `UnknownLabelError`.
 */
export function checkChoice(choice: string, ...hierarchies: readonly LabelHierarchy[]): void {
  if (hierarchies.some((each) => each.classOf(choice) !== null)) return;
  const accepted = hierarchies.at(-1)!.choices.join(", ");
  throw new UnknownLabelError(`'${choice.slice(0, 64)}' is not a choice; accepted: ${accepted}`);
}
