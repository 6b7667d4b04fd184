import { LocalError } from "../protocol/errors.js";
const PATIENCE = 10_000;
const REASONS = new Map([
    ["NotAllowedError", "it is refused: allow this page the microphone in the browser's settings"],
    ["NotFoundError", "this device has none: connect one"],
    ["NotReadableError", "it cannot be opened: another program may be using it"],
]);
export class MicrophoneError extends LocalError {
}
export async function listen(worklet) {
    if (globalThis.navigator?.mediaDevices === undefined) {
        throw new MicrophoneError("no microphone: browsers give one only to pages that come over https or from this device");
    }
    const audio = {
        echoCancellation: false,
        noiseSuppression: false,
        autoGainControl: false,
        channelCount: 1,
    };
    let stream;
    let context;
    let timer;
    try {
        stream = await navigator.mediaDevices.getUserMedia({ audio });
        context = new AudioContext();
        const late = new Promise((_, reject) => {
            timer = setTimeout(() => reject(new MicrophoneError("the microphone gave no sound")), PATIENCE);
        });
        const samples = await Promise.race([second(stream, context, worklet), late]);
        return { channels: [samples], rate: context.sampleRate };
    }
    catch (error) {
        if (error instanceof MicrophoneError)
            throw error;
        const reason = error instanceof Error ? (REASONS.get(error.name) ?? error.message) : error;
        throw new MicrophoneError(`no microphone: ${reason}`);
    }
    finally {
        for (const track of stream?.getTracks() ?? [])
            track.stop();
        clearTimeout(timer);
        await context?.close();
    }
}
async function second(stream, context, worklet) {
    await context.audioWorklet.addModule(worklet);
    const collector = new AudioWorkletNode(context, "second-collector", {
        numberOfOutputs: 0,
        channelCount: 1,
        channelCountMode: "explicit",
    });
    const heard = new Promise((resolve, reject) => {
        const fail = () => reject(new MicrophoneError("the microphone was lost while it listened"));
        collector.port.onmessage = ({ data }) => resolve(data);
        collector.onprocessorerror = fail;
        for (const track of stream.getTracks())
            track.onended = fail;
    });
    context.createMediaStreamSource(stream).connect(collector);
    await context.resume();
    return heard;
}
