// node encode.mjs PAGE: the tokenizer of a page, called as tests/tokenizers/encode.c calls that of the runtime. Reads
// texts from standard input, each behind its length in bytes (uint32, little-endian), and prints for each a line: its
// ids, a tab, and the text that they decode to, in hexadecimal.
// node encode.mjs PAGE CAPACITY: reads pairs of texts, and prints at most CAPACITY ids of each, a tab, and their
// segments; with `alone` after it, texts, and prints at most CAPACITY ids of each.
// node encode.mjs PAGE ids: reads lists of ids (int32, little-endian), each after its length in bytes, and prints for
// each the text in hexadecimal and, after a tab, the parts in which a stream gives it.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [folder, capacity, alone] = process.argv.slice(2);
const { Tokenizer } = await import(pathToFileURL(`${folder}/tokenizer.js`));
const { textOf } = await import(pathToFileURL(`${folder}/unicode.js`));
const { model } = await import(pathToFileURL(`${folder}/model.js`));
const tokenizer = Tokenizer.open(new Uint8Array(readFileSync(`${folder}/${model.tokenizer}`)), model.patterns,
    model.rules);

const given = readFileSync(0), all = [], out = [], hex = (text) => Buffer.from(text, "utf8").toString("hex");
for (let at = 0; at < given.length;) {
    const size = given.readUInt32LE(at);
    all.push(given.subarray(at + 4, at + 4 + size));
    at += 4 + size;
}
const texts = capacity === "ids" ? [] : all.map(textOf);
if (capacity === "ids") {
    for (const bytes of all) {
        const ids = Array.from({ length: bytes.length / 4 }, (_, i) => bytes.readInt32LE(4 * i));
        const stream = tokenizer.stream(), parts = [...ids.map((id) => stream.feed(id)), stream.finish()];
        out.push(`${hex(tokenizer.decode(ids))}\t${parts.map((part) => `${hex(part)},`).join("")}`);
    }
} else if (alone) {
    for (const text of texts) out.push(tokenizer.encode(text, Number(capacity)).join(" "));
} else if (capacity) {
    for (let i = 0; i + 1 < texts.length; i += 2) {
        const { ids, segments } = tokenizer.encodePair(texts[i], texts[i + 1], Number(capacity));
        out.push(`${ids.join(" ")}\t${segments.join(" ")}`);
    }
} else {
    for (const text of texts) {
        let line;
        try {
            const ids = tokenizer.encode(text);
            line = `${ids.join(" ")}\t${hex(tokenizer.decode(ids))}`;
        } catch (error) {
            line = `${error.message}\t`;
        }
        out.push(line);
    }
}
process.stdout.write(out.map((line) => line + "\n").join(""));
