/**
 * Products of matrices and convolutions, as fast as plain loops over arrays get.
 *
 * Layouts are TensorFlow Lite's: images are rows, columns, channels; a filter of an output channel
 * is rows, columns, input channels.
 */

/**
 * Write out[r, c] = max(bias[c] + Σ left[r, i] right[c, i] over i < inner, least).
 *
 * Blocks of four by four: each number that is fetched is used four times.
 */
export function product(
  left: Float64Array,
  right: Float64Array,
  out: Float64Array,
  inner: number,
  least: number,
  bias?: Float64Array,
): void {
  const columns = right.length / inner;
  const rows = left.length / inner;
  const wholeRows = rows - (rows % 4);
  const wholeColumns = columns - (columns % 4);
  for (let c = 0; c < wholeColumns; c += 4) {
    const b0 = bias?.[c] ?? 0;
    const b1 = bias?.[c + 1] ?? 0;
    const b2 = bias?.[c + 2] ?? 0;
    const b3 = bias?.[c + 3] ?? 0;
    for (let r = 0; r < wholeRows; r += 4) {
      let s00 = b0, s01 = b1, s02 = b2, s03 = b3;
      let s10 = b0, s11 = b1, s12 = b2, s13 = b3;
      let s20 = b0, s21 = b1, s22 = b2, s23 = b3;
      let s30 = b0, s31 = b1, s32 = b2, s33 = b3;
      let l0 = r * inner, l1 = l0 + inner, l2 = l1 + inner, l3 = l2 + inner;
      let r0 = c * inner, r1 = r0 + inner, r2 = r1 + inner, r3 = r2 + inner;
      for (const end = l0 + inner; l0 < end; l0++, l1++, l2++, l3++, r0++, r1++, r2++, r3++) {
        const x0 = left[l0]!, x1 = left[l1]!, x2 = left[l2]!, x3 = left[l3]!;
        const y0 = right[r0]!, y1 = right[r1]!, y2 = right[r2]!, y3 = right[r3]!;
        s00 += x0 * y0; s01 += x0 * y1; s02 += x0 * y2; s03 += x0 * y3;
        s10 += x1 * y0; s11 += x1 * y1; s12 += x1 * y2; s13 += x1 * y3;
        s20 += x2 * y0; s21 += x2 * y1; s22 += x2 * y2; s23 += x2 * y3;
        s30 += x3 * y0; s31 += x3 * y1; s32 += x3 * y2; s33 += x3 * y3;
      }
      const at = r * columns + c;
      write(out, at, s00, s01, s02, s03, least);
      write(out, at + columns, s10, s11, s12, s13, least);
      write(out, at + 2 * columns, s20, s21, s22, s23, least);
      write(out, at + 3 * columns, s30, s31, s32, s33, least);
    }
  }
  for (let r = 0; r < rows; r++) {
    for (let c = r < wholeRows ? wholeColumns : 0; c < columns; c++) {
      let sum = bias?.[c] ?? 0;
      for (let i = 0; i < inner; i++) sum += left[r * inner + i]! * right[c * inner + i]!;
      out[r * columns + c] = Math.max(sum, least);
    }
  }
}

function write(
  out: Float64Array,
  at: number,
  a: number,
  b: number,
  c: number,
  d: number,
  least: number,
): void {
  out[at] = Math.max(a, least);
  out[at + 1] = Math.max(b, least);
  out[at + 2] = Math.max(c, least);
  out[at + 3] = Math.max(d, least);
}

/** Positions of a filter on images. */
export interface Window {
  readonly images: number;
  readonly height: number;
  readonly width: number;
  readonly channels: number;
  readonly filterRows: number;
  readonly filterColumns: number;
  readonly strideRows: number;
  readonly strideColumns: number;
  /** Rows and columns of positions. */
  readonly rows: number;
  readonly columns: number;
  /** Rows of zeros above an image, and columns left of it. */
  readonly top: number;
  readonly left: number;
}

/** Write the patch under a filter at each position, one row each; padding stays zero. */
export function patches(image: Float64Array, window: Window, out: Float64Array): void {
  const { channels } = window;
  const taps = window.filterRows * window.filterColumns;
  eachRun(window, (from, count, place, tap) => {
    let to = (place * taps + tap) * channels;
    for (const end = from + count * channels; from < end; from++, to++) out[to] = image[from]!;
  });
}

/** Write the convolution of each channel with its own filter, clamped below at `least`. */
export function depthwise(
  image: Float64Array,
  filter: Float64Array,
  bias: Float64Array,
  window: Window,
  least: number,
  out: Float64Array,
): void {
  const { channels } = window;
  for (let at = 0; at < out.length; at += channels) out.set(bias, at);
  eachRun(window, (from, count, place, tap) => {
    const start = place * channels;
    let weight = tap * channels;
    for (let i = 0; i < count; i++) {
      for (let to = start; to < start + channels; to++) {
        out[to]! += image[from++]! * filter[weight++]!;
      }
    }
  });
  for (let i = 0; i < out.length; i++) out[i] = Math.max(out[i]!, least);
}

/**
 * Visit each row of a filter at each position, as far as it lies within the image.
 *
 * `visit`: takes where the row's first pixel begins in the images, the number of pixels, the number
 * of the position, and that of the first pixel in the filter.
 */
function eachRun(
  window: Window,
  visit: (from: number, count: number, place: number, tap: number) => void,
): void {
  const { height, width, channels, filterRows, filterColumns } = window;
  let place = 0;
  for (let image = 0; image < window.images; image++) {
    for (let row = 0; row < window.rows; row++) {
      for (let column = 0; column < window.columns; column++, place++) {
        const x = column * window.strideColumns - window.left;
        const [first, end] = [Math.max(0, -x), Math.min(filterColumns, width - x)];
        for (let i = 0; i < filterRows; i++) {
          const y = row * window.strideRows - window.top + i;
          if (y < 0 || y >= height) continue;
          const from = ((image * height + y) * width + x + first) * channels;
          visit(from, end - first, place, i * filterColumns + first);
        }
      }
    }
  }
}
