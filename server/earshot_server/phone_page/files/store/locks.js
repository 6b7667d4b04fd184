import { LocalError, WrongStateError } from "../protocol/errors.js";
export class BusyError extends LocalError {
}
export async function alone(name, work) {
    const { locks } = navigator;
    if (locks === undefined) {
        throw new WrongStateError("no phone: browsers let only pages of https keep one");
    }
    return locks.request(name, { ifAvailable: true }, async (lock) => {
        if (lock === null)
            throw new BusyError("busy: this phone is at work, here or in another tab");
        return work();
    });
}
