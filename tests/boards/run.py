#!/usr/bin/env python3
"""Microcontrollers: examples/board and small models on emulated boards, whose bits are those of the scalar target here
and whose memory is at most what `attnc explain` says; the rows of the targets' tables and specs of tests/differential
on these processors; the plans of all commands; and --budget. `run.py budget` tries that alone. Speaks TAP.

Environment: ATTNC_LONG=1 tries every board and spec, which otherwise take turns with the commits, one board a
run; ATTNC_QUICK=1 tries fewer specs."""
import glob
import os
import re
import shutil
import struct
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib import npy  # noqa: E402
from lib.attnc import ATTNC, CANNOT, LONG, QUICK, ROOT, run, said  # noqa: E402
from lib.tap import Report, Skip  # noqa: E402
from lib.turns import in_turn, rotated, turn  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
BOARD = os.path.join(ROOT, "examples", "board")
NARROW = "weights=int8,activations=int8,cache=int8"
ARM = [("arm-none-eabi-gcc", "gcc-arm-none-eabi"), ("qemu-system-arm", "qemu-system-arm")]
RISCV = [("riscv64-unknown-elf-gcc", "gcc-riscv64-unknown-elf"), ("qemu-system-riscv32", "qemu-system-misc")]
TOOLS = {"cm3": ARM, "cm4": ARM, "cm55": ARM, "rv32": RISCV}  # programs, and the packages that have them
# options of gcc, where the data of programs with a library lie, the machine
LIBRARY = {"cm3": ("-mcpu=cortex-m3", "0x20000000", "mps2-an385"),
           "cm4": ("-mcpu=cortex-m4 -mfpu=fpv4-sp-d16 -mfloat-abi=hard", "0x20000000", "mps2-an386"),
           "cm55": ("-mcpu=cortex-m55 -mfloat-abi=hard", "0x60000000", "mps3-an547")}
SPECS = {"pooled": """model pooled { d_model 24, vocab 50
    encoder { seq <= 10, position learned, layers 2 { attention self { heads 3 }, ffn { d_ff 40, activation gelu } } }
    head pool mean l2
}
""", "told": """model told { d_model 32, vocab 45
    decoder { seq <= 12, position learned
        layers 2 { attention self { heads 4, mask causal }, ffn { d_ff 48, activation relu } } }
    head logits
}
"""}
MAINS = {"pooled": """
static _Alignas(64) unsigned char workspace[POOLED_WORKSPACE_BYTES(1)];
static float pooled[2][POOLED_POOLED_WIDTH];
static int work(void) {
    static const int32_t lengths[] = {7, 10}, tokens[] = {7, 1, 4, 9, 2, 49, 0, 3, 3, 3, 8, 40, 41, 42, 43, 44, 45};
    pooled_input input = {.size = sizeof input, .batch = 2, .lengths = lengths, .tokens = tokens};
    pooled_output output = {.size = sizeof output, .pooled = &pooled[0][0]};
    const int status = pooled_forward(&model, &input, &output, workspace, sizeof workspace);
    tell(&pooled[0][0], 2 * POOLED_POOLED_WIDTH);
    return status;
}
""", "told": """
static _Alignas(64) unsigned char workspace[TOLD_DECODE_WORKSPACE_BYTES(1)], state[TOLD_STATE_BYTES];
static float logits[TOLD_VOCAB];
static int work(void) {
    static const int32_t prompt[] = {3, 14, 15, 9, 2, 6, 5};
    void *states[] = {state};
    told_decoded output = {.size = sizeof output, .logits = logits};
    int status = told_state_init(state, sizeof state);
    if (!status) status = told_prefill(&model, state, prompt, 7, &output, workspace, sizeof workspace);
    tell(logits, TOLD_VOCAB);
    for (int32_t token = 1; !status && token < 40; token += 9) {
        status = told_step(&model, states, &token, 1, &output, workspace, sizeof workspace);
        tell(logits, TOLD_VOCAB);
    }
    return status;
}
"""}
AROUND = """#include "board.h"
#include "NAME.h"
static NAME_ctx model;
static void tell(const float *numbers, int n) {
    for (int i = 0; i < n; i++) {
        union { float number; uint32_t bits; } x = {numbers[i]};
        board_print("word "), board_print_hex(x.bits), board_print("\\n");
    }
}
WORK
int main(void) {
    int status = NAME_init(&model, NAME_embedded(), UPPER_WEIGHTS_BYTES, NULL);
    if (!status) status = work();
    if (status) board_print(NAME_status_text(status)), board_print("\\n");
    return status;
}
"""
report = Report("boards")


def boards():
    """Those of this run."""
    names = list(TOOLS)
    return in_turn(names, 4)


def need(board):
    for program, package in TOOLS[board]:
        if not shutil.which(program):
            raise Skip(f"{program} is not there, of the package {package}: scripts/install_packages.sh boards")


def built(board, folder, **environment):
    """What a program prints on a board, or here."""
    done = run("sh", os.path.join(BOARD, "board.sh"), board, folder, env={"ATTNC": ATTNC, **environment})
    assert done.returncode == 0, f"{board}: exit {done.returncode}\n{said(done)}"
    assert "warning" not in done.stderr, done.stderr
    return done.stdout


def explained(spec, board, precision):
    """(flash, RAM without the stack, stack) in bytes, as explain rounds them."""
    text = run(ATTNC, "explain", spec, "--target", board, "--precision", precision, status=0).stdout
    units = {"": 1, "k": 1000, "M": 1000000}

    def amount(pattern):
        found = re.search(pattern + r" ([\d.]+) ([kM]?)B", text, re.M)
        assert found, f"`{pattern}` is not in\n{text}"
        return float(found[1]) * units[found[2]]

    stack = amount("^RAM .*stack about")
    return amount("^flash +about"), amount("^RAM +about") - stack, stack


def number(name, printed):
    return int(re.search(rf"^{name} (\d+)$", printed, re.M)[1])


def check_memory(printed, spec, board, precision):
    """What is measured, with the program around the model, is at most what explain says, and most of it."""
    flash, arrays, stack = explained(spec, board, precision)
    for name, bound, least in (("flash", flash + 2048, 0.5), ("arrays", arrays + 512, 0.5), ("stack", stack, 0.2)):
        measured = number(name, printed)
        assert least * bound <= measured <= bound * 1.001, f"{name}: {measured} bytes, explain says {bound:.0f}"
    return " ".join(f"{name} {number(name, printed)} of {bound:.0f}," for name, bound in
                    (("flash", flash), ("arrays", arrays), ("stack", stack)))


def dates(board, folder):
    """The example answers with the bits of the scalar target, in 256 KB of flash and 96 KB of RAM."""
    need(board)
    exact = {"OPTIONS": "--reproducible"} if board == "cm55" else {}
    here = re.findall("^date .*", built("host", folder + "/host", TARGET="scalar", **exact), re.M)
    printed = built(board, folder + "/" + board, BUDGET="flash=256k,ram=96k", **exact)
    assert len(here) == 4 and re.findall("^date .*", printed, re.M) == here, printed
    assert here[0].startswith("date 1997-05-03 "), here[0]
    assert number("arrays", printed) + number("stack", printed) <= 96 * 1024, printed
    if exact:
        plain = built(board, folder + "/plain", BUDGET="flash=256k,ram=96k")
        answers = re.findall(r"^date (\S+)", plain, re.M)
        assert answers == [line.split()[1] for line in here], plain
        printed = plain
    note = check_memory(printed, "examples/dates/dates.attn", board, NARROW)
    report.result(f"dates/{board}", note=f"{note} {number('instructions', printed)} instructions")


def floats(printed):
    return [struct.unpack(">f", bytes.fromhex(word))[0] for word in re.findall("^word (.*)", printed, re.M)]


def small(name, board, folder):
    """A small model gives the words of the scalar target here, and on vectors in f32 numbers that are near."""
    need(board)
    spec, main = f"{folder}/{name}.attn", f"{folder}/{name}_main.c"
    with open(spec, "w", encoding="utf-8") as file:
        file.write(SPECS[name])
    with open(main, "w", encoding="utf-8") as file:
        file.write(AROUND.replace("WORK", MAINS[name]).replace("NAME", name).replace("UPPER", name.upper()))
    for precision in ("f32", "weights=int8,activations=int8"):
        vectors = board == "cm55"
        options = {"MODEL": spec, "MAIN": main, "WEIGHTS": "random:1", "PRECISION": precision,
                   "OPTIONS": "--reproducible" if vectors and precision != "f32" else ""}
        printed = built(board, f"{folder}/{name}-{board}", **options)
        want, got = floats(built("host", f"{folder}/{name}-host", TARGET="scalar", **options)), floats(printed)
        assert len(want) > 40 and len(want) == len(got), f"{len(got)} numbers, not {len(want)}"
        most = max(abs(a - b) for a, b in zip(want, got))
        assert most <= (1e-5 if vectors and precision == "f32" else 0), f"{precision}: they differ by {most}"
        check_memory(printed, spec, board, precision)


def tools_with_library(board, folder):
    """A compiler and an emulator for programs that read and write, as attnc check and test_isa start them."""
    need(board)
    if not os.path.exists("/usr/lib/arm-none-eabi/newlib/librdimon.a"):
        raise Skip("newlib is not there, of the package libnewlib-arm-none-eabi: scripts/install_packages.sh boards")
    options, ram, machine = LIBRARY[board]
    cc, emulator = f"{folder}/{board}-cc", f"{folder}/{board}-run"
    link = (f"{HERE}/library.c -nostartfiles -specs=rdimon.specs -T {HERE}/library.ld -Wl,--defsym=RAM={ram} -lm "
            "-u _printf_float")
    compiles = 'case " $* " in *" -c "* | *" -fsyntax-only "*) exec $gcc "$@" ;; esac'
    for path, text in ((cc, f'gcc="arm-none-eabi-gcc -mthumb {options}"\n{compiles}\nexec $gcc "$@" {link}\n'),
                       (emulator, f"exec qemu-system-arm -M {machine} -nographic -monitor none -serial none "
                                  '-semihosting-config enable=on,target=native -kernel "$1"\n')):
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + text)
        os.chmod(path, 0o755)
    return cc, emulator


def isa(board, folder):
    """Each row of the table against its meaning."""
    cc, emulator = tools_with_library(board, folder)
    done = run("build/unit/test_isa", board, env={"CC": cc, "EMULATOR": emulator})
    assert done.returncode == 0 and "skipped" not in done.stdout, said(done)


def differential(board, folder):
    """Specs of tests/differential within the bound of the interpreter."""
    cc, emulator = tools_with_library(board, folder)
    names = ["norm_post", "int8_rows_small", "cache_int8", "int4_rows", "int8_outliers", "prefix"]
    specs = [f"tests/differential/{name}.attn" for name in names]
    if LONG:
        specs = sorted(glob.glob("tests/differential/*.attn", root_dir=ROOT))[turn() % 3::3]
    for spec in specs[:1] if QUICK else specs if LONG else [rotated(specs)]:
        done = run(ATTNC, "check", "--small", spec, "--target", board, "--cc", cc, "--run", emulator)
        assert done.returncode == 0, f"{spec}: {said(done)}"


def plain_tables(folder):
    """The tables of plain C run here, too."""
    for target, spec in in_turn([(t, s) for t in ("cm3", "cm4", "rv32") for s in ("int8_rows", "decoder_only")]):
        done = run(ATTNC, "check", "--small", f"tests/differential/{spec}.attn", "--target", target)
        assert done.returncode == 0, f"{target}, {spec}: {said(done)}"


def budget(folder):
    """More than a budget is refused with the figures, and nothing is written."""
    spec = ["examples/dates/dates.attn", "--precision", NARROW]

    def compiled(bound, *options, target="cm3"):
        out = f"{folder}/budget"
        shutil.rmtree(out, ignore_errors=True)
        done = run(ATTNC, "compile", *spec, "-o", out, "--budget", bound, "--target", target, *options)
        assert os.path.exists(out) == (done.returncode == 0), f"{bound}: files are left"
        return done

    flash = (r"flash of (\d+) bytes, where the budget is 131072 \(weights 164608, code about \d+, constants about "
             r"\d+\)")
    ram = (r"RAM of (\d+) bytes, where the budget is 65536 \(state 2688, source 7808, workspace \d+, inputs and output "
           r"376, stack about \d+\)")
    for bound, pattern in (("flash=128k", flash), ("ram=64k", ram), ("ram=64k,flash=128k", flash + " and " + ram),
                           ("flash=131072,ram=65536", flash + " and " + ram), ("flash=1M,ram=65536", ram)):
        done = compiled(bound)
        assert done.returncode == CANNOT, f"{bound}: {said(done)}"
        assert re.fullmatch(f"attnc: error: `dates` needs about {pattern} on cm3\n", done.stderr), done.stderr
    for bound in ("flash=256k,ram=96k", "flash=1M", "ram=96k"):
        for target in TOOLS:
            done = compiled(bound, target=target)
            assert done.returncode == 0, f"{bound}: {said(done)}"
            flash_line, ram_line = done.stdout.splitlines()
            for line, name in ((flash_line, "flash"), (ram_line, "RAM")):
                assert line.startswith(name) and " about " in line, done.stdout
                assert line.endswith(" % of the budget") == (name.lower() in bound), f"{bound}: {line}"
    for bound in ("", "flash", "flash=", "flash=0", "flash=1,flash=2", "rom=4k", "flash=4q", "flash=1k;ram=1k",
                  "ram=-1"):
        done = compiled(bound)
        assert done.returncode == 2 and "`--budget`" in done.stderr, f"{bound}: {said(done)}"
    for target in ("scalar", "cm3,cm4", "native"):
        done = compiled("flash=1M", target=target)
        assert done.returncode == 2 and "with one microcontroller" in done.stderr, said(done)


HEADER_ALONE = """#!/bin/sh
for word; do case $word in */all-models.c) cp "${word%/*}/decoder_only.h" "$KEPT"; exit 1 ;; esac; done
exec clang "$@"
"""


def least_memory(folder):
    """Every command that makes C for a microcontroller plans for little memory, as `attnc compile` does."""
    spec, cc, packed = "tests/differential/decoder_only.attn", folder + "/header-cc", folder + "/least.attnw"
    with open(cc, "w", encoding="utf-8") as file:
        file.write(HEADER_ALONE)
    os.chmod(cc, 0o755)
    npy.write(folder + "/ids.npy", [1, 2, 3])
    run(ATTNC, "pack", spec, "--weights", "random:1", "-o", packed, status=0)

    def sizes(path):
        with open(path, encoding="utf-8") as file:
            return re.findall(r"^#define (DECODER_ONLY_\w*WORKSPACE\w*.*)", file.read(), re.M)

    for target in ("cm4", "scalar"):
        run(ATTNC, "compile", spec, "-o", folder + "/least", "--target", target, status=0)
        want = sizes(folder + "/least/decoder_only.h")
        assert len(want) >= 2, want
        tokens = ["--in", f"tokens={folder}/ids.npy"]
        for weights in ("random:1", packed):
            for command in (["run", *tokens, "--out", f"logits={folder}/l.npy"], ["bench"],
                            ["generate", *tokens, "--max-new", "2"],
                            ["compare", *tokens, "--precision", "bf16"]):
                kept = f"{folder}/least-{command[0]}.h"
                run(ATTNC, command[0], spec, *command[1:], "--weights", weights, "--target", target, "--cc", cc,
                    env={"KEPT": kept})
                assert sizes(kept) == want, f"{command[0]} {weights} {target}: {sizes(kept)}, not {want}"
                os.remove(kept)
        for kind in ("python", "rust"):
            out = f"{folder}/least-{kind}"
            run(ATTNC, kind, spec, "-o", out, "--target", target, status=0)
            header, = glob.glob(out + "/**/decoder_only.h", recursive=True)
            assert sizes(header) == want, f"{kind} {target}: {sizes(header)}, not {want}"


def weights_in_place(folder):
    """Embedded weights are constant data, which the code reads where they are, and the C needs nothing of a system."""
    need("cm3")
    built("cm3", folder + "/place")
    done = run("arm-none-eabi-nm", folder + "/place/dates.elf", status=0)
    assert re.search(r"^000[0-9a-f]{5} [rRtT] dates_embedded_data$", done.stdout, re.M), done.stdout
    with open(folder + "/place/dates.c", encoding="utf-8") as file:
        includes = re.findall("^ *#include (.*)", file.read(), re.M)
    assert includes == ['"dates.h"'], includes
    with open(folder + "/place/dates.h", encoding="utf-8") as file:
        includes = re.findall("^ *#include (.*)", file.read(), re.M)
    assert includes == ["<stddef.h>", "<stdint.h>"], includes


def compiled(board, folder):
    """The C has no warning, from gcc and from clang, and asks for nothing but copies of memory and arithmetic."""
    need(board)
    out = f"{folder}/strict-{board}"
    run(ATTNC, "compile", "examples/dates/dates.attn", "-o", out, "--target", board, "--precision", NARROW, status=0)
    strict = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-pedantic", "-ffreestanding", "-c", out + "/dates.c"]
    compilers = [["riscv64-unknown-elf-gcc", "-march=rv32imac", "-mabi=ilp32"],
                 ["riscv64-unknown-elf-gcc", "-march=rv32imafc", "-mabi=ilp32f"]]
    if board in LIBRARY:
        options = ["-mthumb", *LIBRARY[board][0].split()]
        compilers = [["arm-none-eabi-gcc", *options]]
        if shutil.which("clang"):
            compilers.append(["clang", "--target=arm-none-eabi", *options])
    for i, compiler in enumerate(compilers):
        done = run(*compiler, *strict, "-o", f"{out}/{i}.o")
        assert done.returncode == 0, f"{compiler}: {said(done)}"
        if "gcc" in compiler[0]:
            done = run(compiler[0].replace("gcc", "nm"), "-u", f"{out}/{i}.o", status=0)
            asked = set(re.findall(r"U (\w+)", done.stdout))
            library = {name for name in asked if re.match(r"__(aeabi_|\w+(sf|df|si|di)\w*)", name)}
            assert asked - library <= {"memcpy", "memset", "memmove"}, asked


def tests():
    with tempfile.TemporaryDirectory() as folder:
        report.attempt("budget", budget, folder)
        if sys.argv[1:] == ["budget"]:
            return
        report.attempt("plain_tables", plain_tables, folder)
        report.attempt("least_memory", least_memory, folder)
        report.attempt("weights_in_place", weights_in_place, folder)
        for board in boards():
            report.guard(f"dates/{board}", dates, board, folder)
            report.attempt(f"compiled/{board}", compiled, board, folder)
            for name in SPECS:
                report.attempt(f"{name}/{board}", small, name, board, folder)
            if board in LIBRARY:
                report.attempt(f"isa/{board}", isa, board, folder)
                report.attempt(f"differential/{board}", differential, board, folder)


if __name__ == "__main__":
    tests()
    sys.exit(report.finish())
