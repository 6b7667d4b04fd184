import assert from "node:assert/strict";
import { test } from "node:test";

import {
  oneSecond,
  type Sound,
  Spectrum,
  type Unusable,
  UnusableRecordingError,
} from "../../client/web/phone/features.ts";

const RATE = 44_100;

function noise(length = RATE, level = 0.1): Float32Array {
  let state = 1;
  return Float32Array.from({ length }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return level * (state / 2 ** 31 - 1);
  });
}

function refused(sound: Sound, reason: Unusable, says: string): void {
  try {
    oneSecond(sound, 16_000);
  } catch (error) {
    assert.ok(error instanceof UnusableRecordingError);
    assert.equal(error.reason, reason);
    assert.match(String(error), new RegExp(`^UnusableRecordingError: .*is ${reason}: .*${says}`));
    return;
  }
  assert.ok(false, `it is not ${reason}`);
}

test("channels are averaged, an offset is removed, and only the first second counts", () => {
  const left = noise(2 * RATE).map((sample) => sample + 0.2);
  const right = noise(2 * RATE, 0.05).map((sample) => sample - 0.1);
  const both = oneSecond({ channels: [left, right], rate: RATE }, 16_000);
  const mono = left.subarray(0, RATE).map((sample, i) => (sample + right[i]!) / 2);
  const alone = oneSecond({ channels: [mono], rate: RATE }, 16_000);
  assert.equal(both.length, 16_000);
  both.forEach((sample, i) => assert.ok(Math.abs(sample - alone[i]!) < 1e-6));
  const mean = both.reduce((sum, sample) => sum + sample, 0) / both.length;
  assert.ok(Math.abs(mean) < 1e-7);
});

test("a tone that the encoder cannot hear is gone, and another keeps its level", () => {
  const tone = (hertz: number): Float32Array =>
    Float32Array.from({ length: RATE }, (_, i) => 0.5 * Math.sin((2 * Math.PI * hertz * i) / RATE));
  refused({ channels: [tone(9000)], rate: RATE }, "silent", "rms is");
  const heard = oneSecond({ channels: [tone(7999)], rate: RATE }, 16_000);
  const power = heard.reduce((sum, sample) => sum + sample * sample, 0) / heard.length;
  assert.ok(Math.abs(power - 0.125) < 1e-6);
});

test("a second that says nothing of its place is refused, by its reason", () => {
  assert.throws(
    () => oneSecond({ channels: [noise(8000)], rate: 8000 }, 16_000),
    /^InvalidInputError: .* 8000 .* hears 16000: record at that rate or above, and not by Bluetooth/,
  );
  refused({ channels: [noise(RATE - 1)], rate: RATE }, "too short", "has 44099 samples");
  refused({ channels: [new Float32Array(RATE)], rate: RATE }, "silent", "at least 1e-4");
  refused({ channels: [new Float32Array(RATE).fill(0.5)], rate: RATE }, "silent", "rms");
  refused({ channels: [noise(RATE, 1e-4)], rate: RATE }, "silent", "rms");
  for (const value of [NaN, Infinity, -Infinity]) {
    const channels = [noise(), noise()];
    channels[1]![RATE - 1] = value;
    refused({ channels, rate: RATE }, "not finite", "NaN or infinite");
  }
  const clipped = (count: number): Sound => {
    const samples = noise();
    samples.fill(-0.9995, 0, count);
    return { channels: [noise(), samples], rate: RATE };
  };
  refused(clipped(45), "clipped", "0.1 % of its samples");
  assert.equal(oneSecond(clipped(44), 16_000).length, 16_000);
});

test("sound of another shape or rate is the caller's mistake", () => {
  const wrong: [Sound, RegExp][] = [
    [{ channels: [noise(8000)], rate: 8000 }, /has 8000 samples per second, .* hears 16000/],
    [{ channels: [], rate: RATE }, /for each channel/],
    [{ channels: [noise(), noise(RATE + 1)], rate: RATE }, /of one length/],
    [{ channels: [[0, 1] as unknown as Float32Array], rate: RATE }, /Float32Array/],
    [{ channels: [noise()], rate: 44_100.5 }, /must be an integer/],
    [{ channels: [noise()], rate: NaN }, /must be an integer/],
    [{ channels: [noise()], rate: 999 }, /1000 to 768000/],
    [{ channels: [noise()], rate: 768_001 }, /1000 to 768000/],
  ];
  for (const [sound, message] of wrong) {
    assert.throws(
      () => oneSecond(sound, 16_000),
      new RegExp(`^InvalidInputError: .*${message.source}`),
    );
  }
});

test("white noise reads the logarithm of its variance after it is brought to unit level", () => {
  const bands = new Spectrum(16_000).of(noise(16_000));
  assert.equal(bands.length, 61 * 64);
  const power = bands.reduce((sum, band) => sum + Math.exp(band), 0) / bands.length;
  assert.ok(Math.abs(power - 1) < 0.05, String(power));
});

test("a spectrum is of one whole finite second", () => {
  const spectrum = new Spectrum(8000);
  assert.throws(() => spectrum.of(noise(7999)), /must have 8000 samples.*has 7999/);
  assert.throws(() => spectrum.of(noise(8000).fill(NaN, 5, 6)), /has NaN or infinite ones/);
});
