import { daysBefore } from "./calendar.js";
export const KEEP_DAYS = 28;
export function expired(made, since, keepDays, today) {
    const last = daysBefore(today, keepDays);
    const all = [...made];
    const undated = all.filter(([, day]) => day === null || day > today);
    const numbers = all.filter(([, day]) => day !== null && day <= last).map(([number]) => number);
    if (!undated.length)
        return { numbers, since: null };
    if (since === null || since > last)
        return { numbers, since: since ?? today };
    return { numbers: [...numbers, ...undated.map(([number]) => number)], since: null };
}
