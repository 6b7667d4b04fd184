/** TensorFlow Lite's operations, as far as the shipped encoders use them. */

import { DamagedEncoderError } from "./encoder_file.ts";
import { Table } from "./flatbuffer.ts";
import {
  type Allowance,
  countOf,
  MOST_DIMENSIONS,
  type Numbers,
  places,
  stridesOf,
} from "./numbers.ts";
import { depthwise, patches, product, type Window } from "./products.ts";

/** An operation with its options: arrays in (undefined for omitted ones), an array out. */
export type Kernel = (given: Inputs, allowance: Allowance) => Numbers;

/** Input arrays of a step. */
export class Inputs {
  readonly #arrays: readonly (Numbers | undefined)[];

  constructor(arrays: readonly (Numbers | undefined)[]) {
    this.#arrays = arrays;
  }

  /** All arrays; throws if one is omitted. */
  get all(): Numbers[] {
    return this.#arrays.map((_, place) => this.at(place));
  }

  /** Return an array. Throws `DamagedEncoderError`: the step has none there. */
  at(place: number): Numbers {
    const found = this.#arrays[place];
    if (found === undefined) throw new DamagedEncoderError("a step of the model lacks an input");
    return found;
  }

  /** Return an array, or undefined if it is left out. */
  maybe(place: number): Numbers | undefined {
    return this.#arrays[place];
  }

  /** Return the numbers of an array that has one for each dimension, such as a shape. */
  dimensions(place: number): number[] {
    const { data } = this.at(place);
    need(data.length <= MOST_DIMENSIONS, "takes a shape of too many dimensions");
    return [...data];
  }
}

/** Operations by number: functions from an operation's options to its kernel. */
export const OPERATIONS: ReadonlyMap<number, (options: Table) => Kernel> = new Map([
  [0, (options) => pairwise(add, options)],
  [2, concatenation],
  [3, convolution],
  [4, depthwiseConvolution],
  [9, fullyConnected],
  [18, (options) => pairwise(multiply, options)],
  [22, () => reshape],
  [36, gather],
  [39, () => transpose],
  [40, (options) => reduction(sums, 0, options, true)],
  [41, (options) => pairwise(subtract, options)],
  [42, (options) => pairwise(divide, options)],
  [45, stridedSlice],
  [55, () => pairwise(larger)],
  [57, () => pairwise(smaller)],
  [73, () => each(Math.log)],
  [74, (options) => reduction(sums, 0, options)],
  [75, () => each(Math.sqrt)],
  [76, () => each((x) => 1 / Math.sqrt(x))],
  [77, () => shape],
  [81, (options) => reduction(products, 1, options)],
  [82, (options) => reduction(maxima, -Infinity, options)],
  [83, pack],
  [92, () => each((x) => x * x)],
  [99, () => pairwise(squaredDifference)],
  [101, () => each(Math.abs)],
  [126, batchProduct],
] satisfies [number, (options: Table) => Kernel][]);

// Each operation on pairs and each reduction has a loop of its own: calls with one pair of numbers
// at a time, through one loop for all, took as long as the products of matrices.

type Pairwise = (x: Float64Array, y: Float64Array, out: Float64Array) => void;
/** Takes numbers, and for each its index in `out`. */
type Reduction = (x: Float64Array, places: Int32Array, out: Float64Array) => void;

const add: Pairwise = (x, y, out) => {
  for (let i = 0; i < out.length; i++) out[i] = x[i]! + y[i]!;
};
const subtract: Pairwise = (x, y, out) => {
  for (let i = 0; i < out.length; i++) out[i] = x[i]! - y[i]!;
};
const multiply: Pairwise = (x, y, out) => {
  for (let i = 0; i < out.length; i++) out[i] = x[i]! * y[i]!;
};
const divide: Pairwise = (x, y, out) => {
  for (let i = 0; i < out.length; i++) out[i] = x[i]! / y[i]!;
};
const larger: Pairwise = (x, y, out) => {
  for (let i = 0; i < out.length; i++) out[i] = Math.max(x[i]!, y[i]!);
};
const smaller: Pairwise = (x, y, out) => {
  for (let i = 0; i < out.length; i++) out[i] = Math.min(x[i]!, y[i]!);
};
const squaredDifference: Pairwise = (x, y, out) => {
  for (let i = 0; i < out.length; i++) out[i] = (x[i]! - y[i]!) * (x[i]! - y[i]!);
};
const sums: Reduction = (x, places, out) => {
  for (let i = 0; i < x.length; i++) out[places[i]!]! += x[i]!;
};
const products: Reduction = (x, places, out) => {
  for (let i = 0; i < x.length; i++) out[places[i]!]! *= x[i]!;
};
const maxima: Reduction = (x, places, out) => {
  for (let i = 0; i < x.length; i++) out[places[i]!] = Math.max(out[places[i]!]!, x[i]!);
};

function each(of: (x: number) => number): Kernel {
  return (given, allowance) => {
    const { shape, data } = given.at(0);
    const out = allowance.zeros(shape);
    data.forEach((x, i) => (out.data[i] = of(x)));
    return out;
  };
}

function pairwise(of: Pairwise, options = Table.EMPTY): Kernel {
  const least = leastOf(options.byte(0));
  return (given, allowance) => {
    const shape = broadcastShape(given.at(0).shape, given.at(1).shape);
    const out = allowance.zeros(shape);
    of(
      broadcast(given.at(0), shape, allowance),
      broadcast(given.at(1), shape, allowance),
      out.data,
    );
    if (least === 0) larger(out.data, new Float64Array(out.data.length), out.data);
    return out;
  };
}

function broadcastShape(one: readonly number[], other: readonly number[]): number[] {
  const [short, long] = one.length < other.length ? [one, other] : [other, one];
  const padded = [...long.slice(short.length).fill(1), ...short];
  return long.map((size, i) => {
    const against = padded[i]!;
    need(size === against || size === 1 || against === 1, "adds arrays of shapes that do not fit");
    return Math.max(size, against);
  });
}

function broadcast(numbers: Numbers, shape: readonly number[], allowance: Allowance): Float64Array {
  if (numbers.data.length === countOf(shape)) return numbers.data;
  const own = stridesOf(numbers.shape).map((stride, i) => (numbers.shape[i] === 1 ? 0 : stride));
  const strides = [...shape.slice(own.length).fill(0), ...own];
  return picked(numbers, shape, strides, 0, allowance).data;
}

function picked(
  numbers: Numbers,
  shape: readonly number[],
  strides: readonly number[],
  start: number,
  allowance: Allowance,
): Numbers {
  const out = allowance.zeros(shape);
  places(shape, strides, start).forEach((place, i) => (out.data[i] = numbers.data[place]!));
  return out;
}

function concatenation(options: Table): Kernel {
  need(options.byte(1) === 0, "has an activation that this phone does not know");
  return (given, allowance) => {
    const arrays = given.all;
    const first = given.at(0).shape;
    const axis = axisOf(options.number(0), first.length);
    const size = arrays.reduce((sum, { shape }) => sum + (shape[axis] ?? NaN), 0);
    const out = allowance.zeros(first.with(axis, size));
    const row = countOf(out.shape.slice(axis));
    let column = 0;
    for (const { shape, data } of arrays) {
      need(
        shape.length === first.length && shape.every((each, i) => i === axis || each === first[i]),
        "joins arrays of shapes that do not fit",
      );
      const length = countOf(shape.slice(axis));
      for (let from = 0, to = column; from < data.length; from += length, to += row) {
        out.data.set(data.subarray(from, from + length), to);
      }
      column += length;
    }
    return out;
  };
}

function reduction(of: Reduction, start: number, options: Table, mean = false): Kernel {
  const keeps = options.byte(0) !== 0;
  return (given, allowance) => {
    const { shape, data } = given.at(0);
    const axes = new Set(given.dimensions(1).map((each) => axisOf(each, shape.length)));
    const kept = shape.map((size, i) => (axes.has(i) ? 1 : size));
    const strides = stridesOf(kept).map((stride, i) => (axes.has(i) ? 0 : stride));
    const out = allowance.zeros(keeps ? kept : shape.filter((_, i) => !axes.has(i)));
    out.data.fill(start);
    of(data, places(shape, strides), out.data);
    if (mean) out.data.forEach((sum, i) => (out.data[i] = (sum * out.data.length) / data.length));
    return out;
  };
}

function shape(given: Inputs): Numbers {
  const { shape } = given.at(0);
  return { shape: [shape.length], data: Float64Array.from(shape) };
}

function reshape(given: Inputs): Numbers {
  const { data } = given.at(0);
  const wanted = given.dimensions(1);
  const open = wanted.indexOf(-1);
  const closed = countOf(wanted.filter((_, i) => i !== open));
  const shape = open < 0 ? wanted : wanted.with(open, data.length / closed);
  need(countOf(shape) === data.length, "gives an array a shape that does not fit");
  return { shape, data };
}

function transpose(given: Inputs, allowance: Allowance): Numbers {
  const numbers = given.at(0);
  const order = given.dimensions(1);
  const strides = stridesOf(numbers.shape);
  need(
    order.length === strides.length && order.every((_, i) => order.includes(i)),
    "turns an array by an order that does not fit",
  );
  const turned = order.map((axis) => numbers.shape[axis]!);
  const steps = order.map((axis) => strides[axis]!);
  return picked(numbers, turned, steps, 0, allowance);
}

function pack(options: Table): Kernel {
  need(options.number(1) === 0, "packs arrays along an axis that is not the first");
  return (given, allowance) => {
    const arrays = given.all;
    const size = given.at(0).data.length;
    const out = allowance.zeros([arrays.length, ...given.at(0).shape]);
    need(
      arrays.every(({ data }) => data.length === size),
      "packs arrays of different shapes",
    );
    arrays.forEach(({ data }, i) => out.data.set(data, i * size));
    return out;
  };
}

function gather(options: Table): Kernel {
  need(options.number(1) === 0, "gathers by batches");
  return (given, allowance) => {
    const { shape, data } = given.at(0);
    const chosen = given.at(1);
    const axis = axisOf(options.number(0), shape.length);
    const size = shape[axis]!;
    need(
      chosen.data.every((each) => each >= 0 && each < size),
      "gathers an index out of range",
    );
    const inner = shape.slice(axis + 1);
    const out = allowance.zeros([...shape.slice(0, axis), ...chosen.shape, ...inner]);
    const row = countOf(inner);
    for (let from = 0, to = 0; from < data.length; from += size * row) {
      for (const each of chosen.data) {
        out.data.set(data.subarray(from + each * row, from + (each + 1) * row), to);
        to += row;
      }
    }
    return out;
  };
}

function stridedSlice(options: Table): Kernel {
  // Masks with a bit for each dimension.
  const [fromStart, toEnd, dropped] = [options.number(0), options.number(1), options.number(4)];
  const isSet = (mask: number, dimension: number): boolean => ((mask >> dimension) & 1) === 1;
  need(options.number(2) === 0 && options.number(3) === 0, "slices in an unsupported way");
  return (given, allowance) => {
    const numbers = given.at(0);
    const [begins, ends, steps] = [given.dimensions(1), given.dimensions(2), given.dimensions(3)];
    need(
      [begins, ends, steps].every(({ length }) => length === numbers.shape.length) &&
        steps.every((each) => each === 1),
      "slices in an unsupported way",
    );
    const strides = stridesOf(numbers.shape);
    let start = 0;
    const sizes = numbers.shape.map((size, i) => {
      const [first, last] = [begins[i]!, ends[i]!].map((place) =>
        Math.min(Math.max(place < 0 ? place + size : place, 0), size),
      );
      const begin = isSet(fromStart, i) ? 0 : first!;
      const end = isSet(dropped, i) ? begin + 1 : isSet(toEnd, i) ? size : last!;
      need(begin < end && end <= size, "cuts nothing out of an array");
      start += begin * strides[i]!;
      return end - begin;
    });
    const cut = picked(numbers, sizes, strides, start, allowance);
    return { shape: sizes.filter((_, i) => !isSet(dropped, i)), data: cut.data };
  };
}

function fullyConnected(options: Table): Kernel {
  const least = leastOf(options.byte(0));
  need(options.byte(1) === 0, "has weights in an order that this phone does not know");
  const keeps = options.byte(2) !== 0;
  return (given, allowance) => {
    const { shape, data } = given.at(0);
    const weights = given.at(1);
    const [columns, inner] = matrix(weights.shape);
    const rows = data.length / inner;
    const wide = keeps ? [...shape.slice(0, -1), columns] : [rows, columns];
    need(countOf(wide) === rows * columns, "multiplies matrices that do not fit");
    return multiplied(data, weights.data, wide, inner, given.maybe(2), least, allowance);
  };
}

function batchProduct(options: Table): Kernel {
  const [leftTurned, rightTurned] = [options.byte(0) !== 0, options.byte(1) !== 0];
  return (given, allowance) => {
    const [batch, left, rows, inner] = matrices(given.at(0), leftTurned, allowance);
    const [others, right, columns, depth] = matrices(given.at(1), !rightTurned, allowance);
    need(batch === others && inner === depth, "multiplies matrices that do not fit");
    const out = allowance.zeros([...given.at(0).shape.slice(0, -2), rows, columns]);
    allowance.spend(batch * rows * columns * inner);
    for (let i = 0; i < batch; i++) {
      product(
        left.subarray(i * rows * inner, (i + 1) * rows * inner),
        right.subarray(i * columns * inner, (i + 1) * columns * inner),
        out.data.subarray(i * rows * columns, (i + 1) * rows * columns),
        inner,
        -Infinity,
      );
    }
    return out;
  };
}

/** Return the number of matrices, their entries, rows and columns, transposed if `turned`. */
function matrices(
  numbers: Numbers,
  turned: boolean,
  allowance: Allowance,
): [number, Float64Array, number, number] {
  const { shape, data } = numbers;
  need(shape.length >= 2, "multiplies arrays that are not matrices");
  const [rows, columns] = matrix(shape.slice(-2));
  const batch = data.length / rows / columns;
  if (!turned) return [batch, data, rows, columns];
  const strides = [rows * columns, 1, columns];
  const out = picked(numbers, [batch, columns, rows], strides, 0, allowance);
  return [batch, out.data, columns, rows];
}

function convolution(options: Table): Kernel {
  const moves = movesOf(options);
  const least = leastOf(options.byte(3));
  need(options.number(4, 1) === 1 && options.number(5, 1) === 1, "has a filter with gaps");
  return (given, allowance) => {
    const image = given.at(0);
    const filter = given.at(1);
    const [, , , channels] = images(image.shape);
    const [filters, filterRows, filterColumns, depth] = images(filter.shape);
    need(depth === channels, "has a filter that does not fit its image");
    const window = windowOf(image.shape, filterRows, filterColumns, moves);
    const inner = filterRows * filterColumns * channels;
    const wide = [window.images, window.rows, window.columns, filters];
    let left = image.data;
    if (filterRows * filterColumns * moves.rows * moves.columns > 1) {
      left = allowance.zeros([countOf(wide) / filters, inner]).data;
      patches(image.data, window, left);
    }
    return multiplied(left, filter.data, wide, inner, given.maybe(2), least, allowance);
  };
}

function depthwiseConvolution(options: Table): Kernel {
  const moves = movesOf(options);
  const least = leastOf(options.byte(4));
  need(options.number(3) === 1, "makes several channels of one");
  need(options.number(5, 1) === 1 && options.number(6, 1) === 1, "has a filter with gaps");
  return (given, allowance) => {
    const image = given.at(0);
    const filter = given.at(1);
    const bias = given.at(2);
    const [, , , channels] = images(image.shape);
    const [one, filterRows, filterColumns, depth] = images(filter.shape);
    need(one === 1 && depth === channels, "has a filter that does not fit its image");
    need(bias.data.length === channels, "has another number of offsets than of channels");
    const window = windowOf(image.shape, filterRows, filterColumns, moves);
    const out = allowance.zeros([window.images, window.rows, window.columns, channels]);
    allowance.spend(out.data.length * filterRows * filterColumns);
    depthwise(image.data, filter.data, bias.data, window, least, out.data);
    return out;
  };
}

function multiplied(
  left: Float64Array,
  right: Float64Array,
  shape: readonly number[],
  inner: number,
  bias: Numbers | undefined,
  least: number,
  allowance: Allowance,
): Numbers {
  need(
    bias === undefined || bias.data.length === right.length / inner,
    "has another number of offsets than of rows",
  );
  const out = allowance.zeros(shape);
  allowance.spend(out.data.length * inner);
  product(left, right, out.data, inner, least, bias?.data);
  return out;
}

/** Strides and padding of a filter. */
interface Moves {
  readonly rows: number;
  readonly columns: number;
  /** Whether images are padded with zeros to keep their size, up to strides (SAME). */
  readonly same: boolean;
}

function movesOf(options: Table): Moves {
  const moves = {
    rows: options.number(2),
    columns: options.number(1),
    same: options.byte(0) === 0,
  };
  need(moves.rows > 0 && moves.columns > 0, "moves a filter by nothing");
  return moves;
}

function windowOf(
  shape: readonly number[],
  filterRows: number,
  filterColumns: number,
  moves: Moves,
): Window {
  const [count, height, width, channels] = images(shape);
  const stops = (size: number, filter: number, step: number): number =>
    Math.ceil((moves.same ? size : size - filter + 1) / step);
  const [rows, columns] = [
    stops(height, filterRows, moves.rows),
    stops(width, filterColumns, moves.columns),
  ];
  const before = (size: number, filter: number, step: number, stopped: number): number =>
    moves.same ? Math.max(0, (stopped - 1) * step + filter - size) >> 1 : 0;
  return {
    images: count,
    height,
    width,
    channels,
    filterRows,
    filterColumns,
    strideRows: moves.rows,
    strideColumns: moves.columns,
    rows,
    columns,
    top: before(height, filterRows, moves.rows, rows),
    left: before(width, filterColumns, moves.columns, columns),
  };
}

function matrix(shape: readonly number[]): [number, number] {
  need(shape.length === 2, "has weights that are not a matrix");
  return [shape[0]!, shape[1]!];
}

function images(shape: readonly number[]): [number, number, number, number] {
  need(shape.length === 4, "takes an array that is not 4-dimensional");
  return [shape[0]!, shape[1]!, shape[2]!, shape[3]!];
}

function axisOf(axis: number, dimensions: number): number {
  const found = axis < 0 ? axis + dimensions : axis;
  need(found >= 0 && found < dimensions, "has an axis out of range");
  return found;
}

/** Return the lower bound of an activation's output. */
function leastOf(activation: number): number {
  need(activation === 0 || activation === 1, "has an activation that this phone does not know");
  return activation === 0 ? -Infinity : 0;
}

function need(holds: boolean, otherwise: string): void {
  if (!holds) throw new DamagedEncoderError(`a step of the model ${otherwise}`);
}
