import { DamagedEncoderError } from "./encoder_file.js";
export const MOST_DIMENSIONS = 8;
const MOST_NUMBERS = 2 ** 23;
const MOST_WORK = 2 ** 29;
export class Allowance {
    #numbers = MOST_NUMBERS;
    #work = MOST_WORK;
    zeros(shape) {
        const count = countOf(shape);
        this.#numbers -= count;
        if (this.#numbers < 0) {
            throw new DamagedEncoderError(`the model's steps make over ${MOST_NUMBERS} numbers`);
        }
        return { shape, data: new Float64Array(count) };
    }
    spend(additions) {
        this.#work -= additions;
        if (this.#work < 0) {
            throw new DamagedEncoderError(`the model's steps need over ${MOST_WORK} additions`);
        }
    }
}
export function countOf(shape) {
    const whole = shape.every((each) => Number.isInteger(each) && each > 0);
    if (!whole || shape.length > MOST_DIMENSIONS) {
        throw new DamagedEncoderError(`the model has an array of shape [${shape.slice(0, MOST_DIMENSIONS + 1)}]`);
    }
    return shape.reduce((product, each) => product * each, 1);
}
export function stridesOf(shape) {
    return shape.map((_, i) => shape.slice(i + 1).reduce((product, each) => product * each, 1));
}
export function places(shape, strides, start = 0) {
    let found = Int32Array.of(start);
    shape.forEach((size, dimension) => {
        const wider = new Int32Array(found.length * size);
        for (let i = 0, at = 0; i < found.length; i++) {
            for (let j = 0; j < size; j++)
                wider[at++] = found[i] + j * strides[dimension];
        }
        found = wider;
    });
    return found;
}
