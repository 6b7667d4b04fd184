import assert from "node:assert/strict";
import { test } from "node:test";

const RATE = 256;
const sent: Float32Array[] = [];

// As much of a browser's audio thread as the worklet uses.
Object.assign(globalThis, {
  sampleRate: RATE,
  AudioWorkletProcessor: class {
    readonly port = {
      postMessage(samples: Float32Array, transfer: ArrayBuffer[]): void {
        sent.push(structuredClone(samples, { transfer }));
      },
    };
  },
  registerProcessor(): void {},
});
const { SecondCollector } = await import("../../client/web/page/worklet.ts");

test("one second is sent once, though an engine goes on when it was told not to", () => {
  const collector = new SecondCollector();
  const block = new Float32Array(128).fill(0.5);
  assert.equal(collector.process([]), true);
  assert.equal(collector.process([[new Float32Array(128)]]), true);
  assert.deepEqual(
    [1, 2, 3].map(() => collector.process([[block]])),
    [true, false, false],
  );
  assert.equal(sent.length, 1);
  assert.deepEqual([...sent[0]!], Array(RATE).fill(0.5));
});
