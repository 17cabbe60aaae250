// node speed.mjs PAGE ROUNDS: prints the milliseconds of the same work by the two modules of a page, in turns: a line
// for each round, with SIMD and without. A decoder writes 100 tokens, other models read 64.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [folder, rounds] = process.argv.slice(2);
const { model } = await import(pathToFileURL(`${folder}/model.js`));
const weights = readFileSync(`${folder}/${model.weights}`);

async function open(name) {
    const c = (await WebAssembly.instantiate(readFileSync(`${folder}/${name}`))).instance.exports;
    new Uint8Array(c.memory.buffer, c.weights(), weights.length).set(weights);
    if (c.begin()) throw new Error("these weights are not of this model");
    const put = (ids) => new Int32Array(c.memory.buffer, c.tokens(), ids.length).set(ids);
    return () => {
        const begin = performance.now();
        if (c.next) {
            c.restart();
            put([Math.max(model.start, 0)]);
            if (c.search(1, 100, 0, 0, 0, 0, 0, 1)) throw new Error("the module refuses the search");
            for (let i = 0; i < 100; i++) {
                const token = c.next();
                if (token < 0) throw new Error(`status ${token}`);
            }
        } else {
            const count = Math.min(64, c.most_tokens());
            put(Array.from({ length: count }, (_, i) => (37 * i) % model.vocab));
            if (c.read(count)) throw new Error("the module refuses the tokens");
        }
        return performance.now() - begin;
    };
}

const simd = await open(model.simd), scalar = await open(model.scalar);
for (let i = 0; i < 3; i++) simd(), scalar(); // until the engine has optimized them
for (let i = 0; i < Number(rounds); i++) console.log(simd(), scalar());
