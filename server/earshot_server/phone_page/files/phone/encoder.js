import { sha256 } from "../protocol/canonical.js";
import { InvalidInputError } from "../protocol/errors.js";
import { hex } from "../protocol/wire.js";
import { DamagedEncoderError, DIMENSIONS, readEncoderFile, } from "./encoder_file.js";
import { BANDS, FRAMES, Spectrum } from "./features.js";
import { Network } from "./tflite.js";
export const DEFAULT_ENCODER = "contrast-2";
export const SHIPPED_ENCODERS = new Map([
    ["contrast-1", "622142b15ef98273a8225aa2adcc1b90486152e775367086d8ec031f7c112816"],
    ["contrast-2", "9a5970c625f538237a438f74daa4122eaf76dc824222818681b5a330b19c823b"],
]);
export async function shippedEncoder(source, name = DEFAULT_ENCODER) {
    const digest = SHIPPED_ENCODERS.get(name);
    if (digest === undefined) {
        throw new DamagedEncoderError(`there is no shipped encoder '${name}'; there are: ` +
            [...SHIPPED_ENCODERS.keys()].join(", "));
    }
    if (source instanceof Response && !source.ok) {
        throw new DamagedEncoderError(`the file of encoder '${name}' is not there: its host answered ${source.status}`);
    }
    const data = source instanceof Response ? new Uint8Array(await source.arrayBuffer()) : source;
    if (hex(await sha256(data)) !== digest) {
        throw new DamagedEncoderError(`the file of encoder '${name}' does not have the digest ${digest}: get it again`);
    }
    return FileEncoder.open(data);
}
export class FileEncoder {
    name;
    dimensions = DIMENSIONS;
    rate;
    #spectrum;
    #network;
    #mean;
    #scale;
    constructor(file) {
        this.name = file.name;
        this.rate = file.rate;
        this.#spectrum = new Spectrum(file.rate);
        this.#network = new Network(file.model);
        this.#mean = file.mean;
        this.#scale = file.scale;
        if (this.#network.inputShape.join() !== [1, FRAMES, BANDS, 1].join()) {
            throw new DamagedEncoderError(`the model must take [1,${FRAMES},${BANDS},1] numbers, not [${this.#network.inputShape}]`);
        }
        const { shape } = this.#network.run(new Float32Array(FRAMES * BANDS));
        if (shape.join() !== [1, DIMENSIONS].join()) {
            throw new DamagedEncoderError(`the model must give [1,${DIMENSIONS}] numbers, not [${shape}]`);
        }
    }
    static async open(data) {
        return new FileEncoder(await readEncoderFile(data));
    }
    embed(second) {
        return unitRow(this.#network.run(this.#spectrum.of(second)).data);
    }
    project(embedding, dimensions) {
        if (embedding.length !== DIMENSIONS) {
            throw new InvalidInputError(`an embedding must have ${DIMENSIONS} numbers, not ${embedding.length}`);
        }
        if (!Number.isInteger(dimensions) || dimensions < 1 || dimensions > DIMENSIONS) {
            throw new InvalidInputError(`dimensions must be 1 to ${DIMENSIONS}, not ${dimensions}`);
        }
        const leading = Float64Array.from(embedding.subarray(0, dimensions));
        return unitRow(leading.map((each, i) => (each - this.#mean[i]) * this.#scale[i]));
    }
}
function unitRow(row) {
    const length = Math.sqrt(row.reduce((sum, each) => sum + each * each, 0));
    return Float32Array.from(row, (each) => each / Math.max(length, Number.MIN_VALUE));
}
