export class FastTransform {
    length;
    #cosines;
    #sines;
    constructor(length) {
        this.length = length;
        this.#cosines = new Float64Array(length / 2);
        this.#sines = new Float64Array(length / 2);
        for (let i = 0; i < length / 2; i++) {
            this.#cosines[i] = Math.cos((2 * Math.PI * i) / length);
            this.#sines[i] = -Math.sin((2 * Math.PI * i) / length);
        }
    }
    forward(real, imaginary) {
        const cosines = this.#cosines;
        const sines = this.#sines;
        for (let half = this.length / 2, step = 1; half >= 1; half /= 2, step *= 2) {
            for (let start = 0; start < this.length; start += 2 * half) {
                for (let i = start, turn = 0; i < start + half; i++, turn += step) {
                    const a = real[i];
                    const b = imaginary[i];
                    const c = real[i + half];
                    const d = imaginary[i + half];
                    const cosine = cosines[turn];
                    const sine = sines[turn];
                    real[i] = a + c;
                    imaginary[i] = b + d;
                    real[i + half] = (a - c) * cosine - (b - d) * sine;
                    imaginary[i + half] = (a - c) * sine + (b - d) * cosine;
                }
            }
        }
    }
    backward(real, imaginary) {
        const cosines = this.#cosines;
        const sines = this.#sines;
        for (let half = 1, step = this.length / 2; half < this.length; half *= 2, step /= 2) {
            for (let start = 0; start < this.length; start += 2 * half) {
                for (let i = start, turn = 0; i < start + half; i++, turn += step) {
                    const cosine = cosines[turn];
                    const sine = -sines[turn];
                    const c = real[i + half];
                    const d = imaginary[i + half];
                    const e = c * cosine - d * sine;
                    const f = c * sine + d * cosine;
                    real[i + half] = real[i] - e;
                    imaginary[i + half] = imaginary[i] - f;
                    real[i] = real[i] + e;
                    imaginary[i] = imaginary[i] + f;
                }
            }
        }
    }
    reversed(k) {
        let place = 0;
        for (let bit = 1; bit < this.length; bit *= 2) {
            place = 2 * place + (k & 1);
            k >>= 1;
        }
        return place;
    }
}
export class ChirpTransform {
    #count;
    #bins;
    #fast;
    #cosines;
    #sines;
    #filter;
    constructor(count, bins, period, sign) {
        this.#count = count;
        this.#bins = bins;
        let length = 2;
        while (length < count + bins - 1)
            length *= 2;
        this.#fast = new FastTransform(length);
        const most = Math.max(count, bins);
        this.#cosines = new Float64Array(most);
        this.#sines = new Float64Array(most);
        this.#filter = [new Float64Array(length), new Float64Array(length)];
        for (let n = 0; n < most; n++) {
            const angle = (sign * Math.PI * ((n * n) % (2 * period))) / period;
            this.#cosines[n] = Math.cos(angle);
            this.#sines[n] = Math.sin(angle);
            for (const place of [...(n < bins ? [n] : []), ...(0 < n && n < count ? [length - n] : [])]) {
                this.#filter[0][place] = Math.cos(angle) / length;
                this.#filter[1][place] = -Math.sin(angle) / length;
            }
        }
        this.#fast.forward(...this.#filter);
    }
    apply(real, imaginary) {
        const length = this.#fast.length;
        const re = new Float64Array(length);
        const im = new Float64Array(length);
        for (let n = 0; n < this.#count; n++) {
            const x = real[n];
            const y = imaginary?.[n] ?? 0;
            re[n] = x * this.#cosines[n] - y * this.#sines[n];
            im[n] = x * this.#sines[n] + y * this.#cosines[n];
        }
        this.#fast.forward(re, im);
        multiply(re, im, ...this.#filter);
        this.#fast.backward(re, im);
        multiply(re, im, this.#cosines, this.#sines, this.#bins);
        return [re.subarray(0, this.#bins), im.subarray(0, this.#bins)];
    }
}
function multiply(real, imaginary, cosines, sines, count = real.length) {
    for (let i = 0; i < count; i++) {
        const x = real[i];
        const y = imaginary[i];
        real[i] = x * cosines[i] - y * sines[i];
        imaginary[i] = x * sines[i] + y * cosines[i];
    }
}
