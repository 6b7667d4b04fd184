/**
 * `earshot-phone/hearing`: recording and encoding of sound, to be loaded when a user first listens.
 */

export { DEFAULT_ENCODER, FileEncoder, shippedEncoder } from "./phone/encoder.ts";
export { DamagedEncoderError } from "./phone/encoder_file.ts";
export { UnusableRecordingError } from "./phone/features.ts";
export { listen, MicrophoneError } from "./phone/microphone.ts";
