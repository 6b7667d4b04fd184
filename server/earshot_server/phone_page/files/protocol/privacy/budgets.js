import { UNITS } from "./events.js";
export const SPANS = ["phase", "year", "life"];
export const OVER = {
    phase: "of the phase",
    year: "of this year",
    life: "of this phone's life",
};
const PREFIX = { phase: "", year: "yearly_", life: "lifetime_" };
const WHOSE = { recording: "", phone: "phone_" };
export const BUDGETS = SPANS.flatMap((span) => UNITS.map((unit) => ({
    span,
    unit,
    epsilon: `largest_${PREFIX[span]}${WHOSE[unit]}epsilon`,
    delta: `largest_${PREFIX[span]}${WHOSE[unit]}delta`,
})));
