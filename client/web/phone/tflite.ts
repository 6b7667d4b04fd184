/**
 * Reader and interpreter of TensorFlow Lite models, as far as the shipped encoders need them.
 *
 * The format is the flatbuffer of TensorFlow Lite's published schema, version 3; tables and fields
 * are named here by their numbers there. Files are untrusted: every offset is checked before it is
 * followed, and memory and time of a run are bounded, so that a hostile file ends in a
 * `DamagedEncoderError`.
 */

import { InvalidInputError } from "../protocol/errors.ts";
import { DamagedEncoderError } from "./encoder_file.ts";
import { rootOf, Table } from "./flatbuffer.ts";
import { Allowance, countOf, MOST_DIMENSIONS, type Numbers, places } from "./numbers.ts";
import { Inputs, type Kernel, OPERATIONS } from "./operations.ts";

const IDENTIFIER = "TFL3";
const VERSION = 3;
/** Most tensors, and most steps, of a model. */
const MOST_PARTS = 4096;
/** Most arrays that one step takes. */
const MOST_INPUTS = 64;
/** Most constant numbers of a model, which are 8 bytes each here. */
const MOST_CONSTANTS = 2 ** 22;

/** Types of constants that are read, by number: bytes of one, and how it is read. */
const TYPES: ReadonlyMap<number, { bytes: number; read: (view: DataView, at: number) => number }> =
  new Map([
    [0, { bytes: 4, read: (view, at) => view.getFloat32(at, true) }],
    [2, { bytes: 4, read: (view, at) => view.getInt32(at, true) }],
    [9, { bytes: 1, read: (view, at) => view.getInt8(at) }],
  ]);

interface Step {
  readonly kernel: Kernel;
  /** Tensors that it takes; -1 for an omitted one. */
  readonly inputs: readonly number[];
  readonly output: number;
}

/** A network of one input and one output. */
export class Network {
  /** Shape of the input; a batch of any size counts as one. */
  readonly inputShape: readonly number[];
  readonly #constants: readonly (Numbers | undefined)[];
  readonly #steps: readonly Step[];
  readonly #input: number;
  readonly #output: number;

  /**
   * Read a model.
   *
   * Throws `DamagedEncoderError`: the model is damaged, too large, or has an operation that is not
   * known here.
   */
  constructor(model: Uint8Array) {
    const root = rootOf(model, IDENTIFIER);
    if (root.number(0) !== VERSION) {
      throw new DamagedEncoderError(
        `the model has version ${root.number(0)} of its format; this phone reads ${VERSION}`,
      );
    }
    const [graph] = root.tables(2, 1);
    if (graph === undefined) throw new DamagedEncoderError("the model has no graph");
    const tensors = graph.tables(0, MOST_PARTS);
    const buffers = root.tables(4, MOST_PARTS);
    this.#input = only(graph.numbers(1, 1), "input", tensors);
    this.#output = only(graph.numbers(2, 1), "output", tensors);
    this.inputShape = shapeOf(tensors[this.#input]!);
    this.#constants = constantsOf(tensors, buffers);
    const codes = root.tables(1, MOST_PARTS);
    const steps = graph.tables(3, MOST_PARTS);
    this.#steps = steps.map((step) => stepOf(step, codes, tensors));
  }

  /**
   * Run the network.
   *
   * `input`: numbers of shape `inputShape`.
   * Returns: the numbers of its output, with their shape.
   * Throws `InvalidInputError`: the input has another length.
   * Throws `DamagedEncoderError`: the model's steps do not fit each other, or exceed the limits.
   */
  run(input: ArrayLike<number>): Numbers {
    const count = countOf(this.inputShape);
    if (input.length !== count) {
      throw new InvalidInputError(`the model takes ${count} numbers, not ${input.length}`);
    }
    const allowance = new Allowance();
    const values = this.#constants.slice();
    values[this.#input] = { shape: this.inputShape, data: Float64Array.from(input) };
    for (const { kernel, inputs, output } of this.#steps) {
      const given = inputs.map((place) => values[place]);
      for (const each of given) allowance.spend(each?.data.length ?? 0);
      values[output] = kernel(new Inputs(given), allowance);
    }
    const said = values[this.#output];
    if (said === undefined) throw new DamagedEncoderError("the model does not make its output");
    return said;
  }
}

function stepOf(step: Table, codes: readonly Table[], tensors: readonly Table[]): Step {
  const code = codes[step.number(0)];
  // Older files have an operation's number in a byte, whose largest value refers to a newer field.
  const number = code === undefined ? -1 : Math.max(code.byte(0), code.number(3));
  const operation = OPERATIONS.get(number);
  if (operation === undefined) {
    throw new DamagedEncoderError(
      `the model has operation ${number} of TensorFlow Lite, which this phone does not know`,
    );
  }
  const inputs = step.numbers(1, MOST_INPUTS);
  if (inputs.some((place) => place < -1 || place >= tensors.length)) {
    throw new DamagedEncoderError("a step of the model takes an array that does not exist");
  }
  const output = only(step.numbers(2, 1), "output of a step", tensors);
  return { kernel: operation(step.table(4) ?? Table.EMPTY), inputs, output };
}

function only(found: readonly number[], role: string, tensors: readonly Table[]): number {
  const [place] = found;
  if (place === undefined || place < 0 || place >= tensors.length) {
    throw new DamagedEncoderError(`the model must have one ${role}, which is one of its arrays`);
  }
  return place;
}

function constantsOf(
  tensors: readonly Table[],
  buffers: readonly Table[],
): (Numbers | undefined)[] {
  let left = MOST_CONSTANTS;
  return tensors.map((tensor) => {
    const bytes = buffers[tensor.number(2)]?.items(0, 1);
    if (bytes === undefined || bytes.byteLength === 0) return undefined;
    left -= countOf(shapeOf(tensor));
    if (left < 0) throw new DamagedEncoderError(`the model has over ${MOST_CONSTANTS} constants`);
    return constant(tensor, bytes);
  });
}

/** Return a constant, dequantized: 8-bit integers times the scale of their channel. */
function constant(tensor: Table, bytes: DataView): Numbers {
  const shape = shapeOf(tensor);
  const count = countOf(shape);
  const type = TYPES.get(tensor.byte(1));
  if (type === undefined) {
    throw new DamagedEncoderError(
      `the model has numbers of type ${tensor.byte(1)}; this phone reads ${[...TYPES.keys()]}`,
    );
  }
  if (bytes.byteLength !== count * type.bytes) {
    throw new DamagedEncoderError(
      `an array of shape [${shape}] has ${bytes.byteLength} bytes, not ${count * type.bytes}`,
    );
  }
  const data = new Float64Array(count);
  for (let i = 0; i < count; i++) data[i] = type.read(bytes, i * type.bytes);
  const scaling = tensor.table(4);
  if (scaling !== undefined) scale({ shape, data }, scaling);
  return { shape, data };
}

function scale({ shape, data }: Numbers, scaling: Table): void {
  const scales = scaling.items(2, 4);
  const count = scales.byteLength / 4;
  if (count === 0) return;
  const zeros = scaling.items(3, 8);
  for (let i = 0; i < zeros.byteLength; i += 8) {
    if (zeros.getBigInt64(i, true) !== 0n) {
      throw new DamagedEncoderError("the model has weights whose zero point is not 0");
    }
  }
  // One scale for all, or one for each index along one dimension.
  const along = count === 1 ? -1 : scaling.number(6);
  if (count !== (shape[along] ?? 1)) {
    throw new DamagedEncoderError(`an array of shape [${shape}] has ${count} scales`);
  }
  const strides = shape.map((_, dimension) => (dimension === along ? 1 : 0));
  places(shape, strides).forEach(
    (channel, i) => (data[i]! *= scales.getFloat32(4 * channel, true)),
  );
}

function shapeOf(tensor: Table): number[] {
  return tensor.numbers(0, MOST_DIMENSIONS);
}
