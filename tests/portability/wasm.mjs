// node wasm.mjs MODULE.wasm [ARGUMENT...]: runs a module, one of WASI by its _start, or one that imports nothing but
// `receive` and `send` of `host`, by its `serve`.
import { readFileSync, readSync, writeSync } from "node:fs";

const [path, ...args] = process.argv.slice(2);
const module = await WebAssembly.compile(readFileSync(path));
let memory;

// Moves all bytes, however many read() or write() takes at a time; 0 at the end of the input.
function move(step, at, size) {
    const bytes = new Uint8Array(memory.buffer, at, size);
    for (let done = 0; done < size; ) {
        try {
            const count = step(bytes, done, size - done);
            if (count === 0) return 0;
            done += count;
        } catch (error) {
            if (error.code === "EOF") return 0;
            if (error.code !== "EAGAIN") throw error;
        }
    }
    return 1;
}

const host = {
    receive: (at, size) => move((bytes, from, n) => readSync(0, bytes, from, n), at >>> 0, size >>> 0),
    send: (at, size) => move((bytes, from, n) => writeSync(1, bytes, from, n), at >>> 0, size >>> 0),
};

if (WebAssembly.Module.imports(module).some((i) => i.module === "wasi_snapshot_preview1")) {
    process.removeAllListeners("warning"); // WASI is called experimental
    const { WASI } = await import("node:wasi");
    const wasi = new WASI({ version: "preview1", args: [path, ...args] });
    const instance = await WebAssembly.instantiate(module, { wasi_snapshot_preview1: wasi.wasiImport });
    process.exitCode = wasi.start(instance);
} else {
    const instance = await WebAssembly.instantiate(module, { host });
    memory = instance.exports.memory;
    process.exitCode = instance.exports.serve();
}
