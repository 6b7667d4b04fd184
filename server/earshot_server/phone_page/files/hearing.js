export { DEFAULT_ENCODER, FileEncoder, shippedEncoder } from "./phone/encoder.js";
export { DamagedEncoderError } from "./phone/encoder_file.js";
export { UnusableRecordingError } from "./phone/features.js";
export { listen, MicrophoneError } from "./phone/microphone.js";
