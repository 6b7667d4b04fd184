/** `earshot-phone`: an Earshot phone for any browser and any app's WebView. */

export { LabelHierarchy } from "./protocol/environments.ts";
export * from "./protocol/errors.ts";
export { DEFAULT_LIMITS, type Limits } from "./protocol/phases/acceptance.ts";
export type { Ending } from "./protocol/messages.ts";
export type { Standing } from "./protocol/privacy/budgets.ts";
export type { Bytes } from "./protocol/wire.ts";
export type { Encoder } from "./phone/encoder.ts";
export type { Sound } from "./phone/features.ts";
export {
  Client,
  type Heard,
  NotEnrolledError,
  openPhone,
  type Options,
} from "./phone/client.ts";
export { UnknownLabelError } from "./phone/labels.ts";
export { type PhoneLink, readLink } from "./phone/link.ts";
export type { OperatorKey } from "./phone/policy.ts";
export type { Visit } from "./phone/visits.ts";
export type { Voter } from "./phone/voters.ts";
export * from "./store/interface.ts";
export { BusyError } from "./store/locks.ts";
export { InvitationRefusedError, UnavailableError } from "./transport/http.ts";
