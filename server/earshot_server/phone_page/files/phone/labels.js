import { LabelHierarchy } from "../protocol/environments.js";
import { InvalidInputError } from "../protocol/errors.js";
export class UnknownLabelError extends InvalidInputError {
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
export function defaultHierarchy() {
    const groups = ENVIRONMENTS.trim()
        .split("\n")
        .map((each) => each.split(":"))
        .map(([name, choices]) => [name, choices.split(",")]);
    return new LabelHierarchy(groups);
}
export function checkChoice(choice, ...hierarchies) {
    if (hierarchies.some((each) => each.classOf(choice) !== null))
        return;
    const accepted = hierarchies.at(-1).choices.join(", ");
    throw new UnknownLabelError(`'${choice.slice(0, 64)}' is not a choice; accepted: ${accepted}`);
}
