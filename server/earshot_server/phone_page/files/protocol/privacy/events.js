import { map, oneOf, real, tagged, whole } from "../fields.js";
export const UNITS = ["recording", "phone"];
export const unit = oneOf(...UNITS);
export const privacyEvent = tagged("event", {
    pure: map({ epsilon: real(0), times: whole(1) }),
    zcdp: map({ rho: real(0) }),
});
export const NOTHING = { event: "pure", epsilon: 0, times: 1 };
export function isNothing(event) {
    return event.event === "pure" && event.epsilon === 0;
}
