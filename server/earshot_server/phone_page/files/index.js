export { LabelHierarchy } from "./protocol/environments.js";
export * from "./protocol/errors.js";
export { DEFAULT_LIMITS } from "./protocol/phases/acceptance.js";
export { Client, NotEnrolledError, openPhone, } from "./phone/client.js";
export { UnknownLabelError } from "./phone/labels.js";
export { readLink } from "./phone/link.js";
export * from "./store/interface.js";
export { BusyError } from "./store/locks.js";
export { InvitationRefusedError, UnavailableError } from "./transport/http.js";
