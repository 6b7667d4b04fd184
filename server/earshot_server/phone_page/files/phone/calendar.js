import { map, real } from "../protocol/fields.js";
export const LONGEST_OFF = 7 * 86_400;
const SLACK = 1.001;
export const look = map({ counted: real(), clock: real(), uptime: real(), start: real() });
const START = crypto.getRandomValues(new Uint32Array(1))[0];
export function lookedAt(last, clock, uptime = performance.now() / 1000, start = START) {
    if (last === null)
        return { counted: clock, clock, uptime, start };
    const most = last.start === start ? SLACK * (uptime - last.uptime) : LONGEST_OFF;
    const passed = Math.min(Math.max(0, clock - last.clock), Math.max(0, most));
    return { counted: last.counted + passed, clock, uptime, start };
}
export function dayOf(seconds) {
    return new Date(1000 * seconds).toISOString().slice(0, 10);
}
export function daysBefore(day, days) {
    return dayOf(Date.parse(`${day}T00:00:00Z`) / 1000 - 86_400 * days);
}
