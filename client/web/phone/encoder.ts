/** Encoders: one second of sound → 128 numbers on the unit sphere. */

import { sha256 } from "../protocol/canonical.ts";
import { InvalidInputError } from "../protocol/errors.ts";
import { type Bytes, hex } from "../protocol/wire.ts";
import {
  DamagedEncoderError,
  DIMENSIONS,
  type EncoderFile,
  readEncoderFile,
} from "./encoder_file.ts";
import { BANDS, FRAMES, Spectrum } from "./features.ts";
import { Network } from "./tflite.ts";

/** Encoder that phones share by default. */
export const DEFAULT_ENCODER = "contrast-3";

/** SHA-256 of each shipped encoder's file by name, hexadecimal: all phones share the same files. */
export const SHIPPED_ENCODERS: ReadonlyMap<string, string> = new Map([
  ["contrast-1", "622142b15ef98273a8225aa2adcc1b90486152e775367086d8ec031f7c112816"],
  ["contrast-3", "239cd1cde9f082de37e76cd821c9622f20f2d69be4753210f19899c777ce994e"],
]);

/** A function from sound to embeddings. It is public, and the same on every phone. */
export interface Encoder {
  /** Name of the encoder and its version: embeddings of two encoders do not compare. */
  readonly name: string;
  /** Length of an embedding. */
  readonly dimensions: number;
  /** Samples per second of the encoder's input, one second of sound. */
  readonly rate: number;

  /** Return the embedding of a second, `rate` numbers in [-1, 1]: a row of length one. */
  embed(second: Float32Array): Float32Array | Promise<Float32Array>;

  /** Return the projection of an embedding to few dimensions, a row of length one. */
  project(embedding: Float32Array, dimensions: number): Float32Array;
}

/**
 * Open a shipped encoder.
 *
 * `source`: the encoder's file, as Earshot ships it, or the response of `fetch` that has it.
 * Throws `DamagedEncoderError`: the file is not the one that all phones share, or is not there.
 */
export async function shippedEncoder(
  source: Bytes | Response,
  name: string = DEFAULT_ENCODER,
): Promise<FileEncoder> {
  const digest = SHIPPED_ENCODERS.get(name);
  if (digest === undefined) {
    throw new DamagedEncoderError(
      `there is no shipped encoder '${name}'; there are: ` +
        [...SHIPPED_ENCODERS.keys()].join(", "),
    );
  }
  if (source instanceof Response && !source.ok) {
    throw new DamagedEncoderError(
      `the file of encoder '${name}' is not there: its host answered ${source.status}`,
    );
  }
  const data = source instanceof Response ? new Uint8Array(await source.arrayBuffer()) : source;
  if (hex(await sha256(data)) !== digest) {
    throw new DamagedEncoderError(
      `the file of encoder '${name}' does not have the digest ${digest}: get it again`,
    );
  }
  return FileEncoder.open(data);
}

/** An encoder with the network of an encoder file. */
export class FileEncoder implements Encoder {
  readonly name: string;
  readonly dimensions: number = DIMENSIONS;
  readonly rate: number;
  readonly #spectrum: Spectrum;
  readonly #network: Network;
  readonly #mean: Float32Array;
  readonly #scale: Float32Array;

  /** Take a file that was checked; see `open`. */
  private constructor(file: EncoderFile) {
    this.name = file.name;
    this.rate = file.rate;
    this.#spectrum = new Spectrum(file.rate);
    this.#network = new Network(file.model);
    this.#mean = file.mean;
    this.#scale = file.scale;
    if (this.#network.inputShape.join() !== [1, FRAMES, BANDS, 1].join()) {
      throw new DamagedEncoderError(
        `the model must take [1,${FRAMES},${BANDS},1] numbers, not [${this.#network.inputShape}]`,
      );
    }
    // Refuses a model whose steps do not fit each other now, not at the first second.
    const { shape } = this.#network.run(new Float32Array(FRAMES * BANDS));
    if (shape.join() !== [1, DIMENSIONS].join()) {
      throw new DamagedEncoderError(
        `the model must give [1,${DIMENSIONS}] numbers, not [${shape}]`,
      );
    }
  }

  /**
   * Open any encoder file; see `shippedEncoder` for those that all phones share.
   *
   * Throws `DamagedEncoderError`: the file is damaged, or its model is one that cannot run here.
   */
  static async open(data: Bytes): Promise<FileEncoder> {
    return new FileEncoder(await readEncoderFile(data));
  }

  /**
   * Embed a second of sound; louder or softer copies get the same embedding.
   *
   * Throws `InvalidInputError`: the second has another length, or is not finite.
   */
  embed(second: Float32Array): Float32Array {
    return unitRow(this.#network.run(this.#spectrum.of(second)).data);
  }

  /**
   * Project an embedding on the leading principal coordinates of public sound, whitened.
   *
   * Throws `InvalidInputError`: the embedding does not have 128 numbers, or `dimensions` is not a
   * whole number from 1 to 128.
   */
  project(embedding: Float32Array, dimensions: number): Float32Array {
    if (embedding.length !== DIMENSIONS) {
      throw new InvalidInputError(
        `an embedding must have ${DIMENSIONS} numbers, not ${embedding.length}`,
      );
    }
    if (!Number.isInteger(dimensions) || dimensions < 1 || dimensions > DIMENSIONS) {
      throw new InvalidInputError(`dimensions must be 1 to ${DIMENSIONS}, not ${dimensions}`);
    }
    const leading = Float64Array.from(embedding.subarray(0, dimensions));
    return unitRow(leading.map((each, i) => (each - this.#mean[i]!) * this.#scale[i]!));
  }
}

function unitRow(row: Float64Array): Float32Array {
  const length = Math.sqrt(row.reduce((sum, each) => sum + each * each, 0));
  return Float32Array.from(row, (each) => each / Math.max(length, Number.MIN_VALUE));
}
