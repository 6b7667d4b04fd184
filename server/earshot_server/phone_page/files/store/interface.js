import { LocalError } from "../protocol/errors.js";
export class WrongKeyError extends LocalError {
}
export class DamagedStoreError extends LocalError {
}
export class LostLedgerError extends DamagedStoreError {
}
export class LostStoreError extends DamagedStoreError {
}
export class StoreUnavailableError extends LocalError {
}
