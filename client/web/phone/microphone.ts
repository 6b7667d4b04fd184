/** The microphone of a browser, one second at a time; it works in a page, not in a worker. */

import { LocalError } from "../protocol/errors.ts";
import type { Sound } from "./features.ts";

/** Milliseconds within which an allowed microphone must deliver its second. */
const PATIENCE = 10_000;

/** Reasons why a browser gives no microphone, by the names of its errors. */
const REASONS: ReadonlyMap<string, string> = new Map([
  ["NotAllowedError", "it is refused: allow this page the microphone in the browser's settings"],
  ["NotFoundError", "this device has none: connect one"],
  ["NotReadableError", "it cannot be opened: another program may be using it"],
]);

/** A microphone that is missing, refused or does not work. */
export class MicrophoneError extends LocalError {
  override name = "MicrophoneError";
}

/**
 * Record exactly one second now, then switch the microphone off.
 *
 * Echo cancellation, noise suppression and gain control are off: they are made for speech, and
 * remove the sound of the place.
 *
 * `worklet`: address of the page's `worklet` script.
 * Returns: one channel at the rate of the microphone, or of the device where browsers hide that.
 * Throws `MicrophoneError`: there is no microphone, or it does not work; the message says why.
 */
export async function listen(worklet: string | URL): Promise<Sound> {
  if (globalThis.navigator?.mediaDevices === undefined) {
    throw new MicrophoneError(
      "no microphone: browsers give one only to pages that come over https or from this device",
    );
  }
  const audio = {
    echoCancellation: false,
    noiseSuppression: false,
    autoGainControl: false,
    channelCount: 1,
  };
  let stream: MediaStream | undefined;
  let context: AudioContext | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  try {
    stream = await navigator.mediaDevices.getUserMedia({ audio });
    // At the microphone's own rate: a Bluetooth headset has a low one, and upsampling adds nothing.
    context = new AudioContext(stream.getAudioTracks()[0]?.getSettings());
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(
        () => reject(new MicrophoneError("the microphone gave no sound")),
        PATIENCE,
      );
    });
    const samples = await Promise.race([second(stream, context, worklet), late]);
    return { channels: [samples], rate: context.sampleRate };
  } catch (error) {
    if (error instanceof MicrophoneError) throw error;
    const reason = error instanceof Error ? (REASONS.get(error.name) ?? error.message) : error;
    throw new MicrophoneError(`no microphone: ${reason}`);
  } finally {
    // First, since this turns the browser's indicator off.
    for (const track of stream?.getTracks() ?? []) track.stop();
    clearTimeout(timer);
    await context?.close();
  }
}

/** Return one second of samples at the context's rate. */
async function second(
  stream: MediaStream,
  context: AudioContext,
  worklet: string | URL,
): Promise<Float32Array> {
  await context.audioWorklet.addModule(worklet);
  const collector = new AudioWorkletNode(context, "second-collector", {
    numberOfOutputs: 0,
    channelCount: 1,
    channelCountMode: "explicit",
  });
  const heard = new Promise<Float32Array>((resolve, reject) => {
    const fail = (): void =>
      reject(new MicrophoneError("the microphone was lost while it listened"));
    collector.port.onmessage = ({ data }) => resolve(data);
    collector.onprocessorerror = fail;
    for (const track of stream.getTracks()) track.onended = fail;
  });
  context.createMediaStreamSource(stream).connect(collector);
  await context.resume();
  return heard;
}
