#!/bin/bash
# scripts/demo.sh: from a fresh clone to sentences ranked by meaning; what is already there is not made again.
#
# Installs what is missing, builds attnc, fetches the weights of MiniLM, writes its C, and runs examples/similarity:
# asking for queries on a terminal, with examples/similarity/queries.txt elsewhere. Without a network it runs
# examples/by_hand, whose weights are committed. Everything it makes is in build/.
# Environment: CC (clang); ATTNC_DEMO_OFFLINE=1 fetches nothing; ATTNC_DEMO_FOLDER (build/demo) holds what is made.
set -eu
cd "$(dirname "$0")/.."

export CC=${CC:-clang}
cflags=(-std=c11 -O2)
out=${ATTNC_DEMO_FOLDER:-build/demo}

say() { echo "demo: $*"; }

# older TARGET SOURCE…: is the target missing, or older than one of its sources?
older() {
    local target=$1 source
    shift
    [ -e "$target" ] || return 0
    for source in "$@"; do
        if [ "$source" -nt "$target" ]; then return 0; fi
    done
    return 1
}

build_attnc() {
    if make -q build/attnc >/dev/null 2>&1; then return; fi
    say "building attnc"
    if ! make -j"$(nproc)" CC="$CC" build/attnc >"$out/make.log" 2>&1; then
        tail -n 20 "$out/make.log" >&2
        say "attnc could not be built; all of the messages: $out/make.log" >&2
        exit 1
    fi
}

fetch_weights() {
    if [ -s "$out/model.safetensors" ] && [ -s "$out/vocab.txt" ]; then return; fi
    if [ "${ATTNC_DEMO_OFFLINE:-0}" = 1 ]; then return 1; fi
    scripts/install_packages.sh fetch || return 1
    say "fetching the weights of MiniLM (90 MB)"
    python3 scripts/fetch_minilm.py "$out"
}

run_similarity() {
    local sources=(examples/similarity/*.c examples/common/wordpiece.c runtime/attn_runtime.c)
    if older "$out/minilm.attnw" build/attnc specs/minilm.attn "$out/model.safetensors"; then
        say "compiling specs/minilm.attn and packing its weights"
        build/attnc compile specs/minilm.attn -o "$out" --weights "$out/model.safetensors"
        touch "$out/minilm.attnw"
    fi
    if older "$out/similarity" "$out/minilm.c" "$out/minilm.h" "${sources[@]}" examples/similarity/*.h \
        examples/common/wordpiece.h runtime/attn_runtime.h; then
        say "building examples/similarity"
        $CC "${cflags[@]}" -I"$out" "${sources[@]}" "$out/minilm.c" -o "$out/similarity" -lutf8proc -lpthread -lm
    fi
    local command=("$out/similarity" --weights "$out/minilm.attnw" --vocab "$out/vocab.txt"
        --file examples/similarity/sentences.txt --top 5 --time)
    if [ -t 0 ] && [ -t 1 ]; then
        say "sentences: examples/similarity/sentences.txt"
        "${command[@]}"
    else
        say "queries: examples/similarity/queries.txt"
        "${command[@]}" <examples/similarity/queries.txt
    fi
}

run_by_hand() {
    local weights=examples/by_hand/by_hand.safetensors
    if older "$out/by_hand" build/attnc specs/by_hand.attn "$weights" examples/by_hand/main.c \
        examples/by_hand/numbers.h; then
        say "compiling specs/by_hand.attn"
        build/attnc compile specs/by_hand.attn -o "$out" --embed-weights --weights "$weights"
        $CC "${cflags[@]}" -I"$out" examples/by_hand/main.c "$out/by_hand.c" -o "$out/by_hand" -lm
    fi
    "$out/by_hand"
}

scripts/install_packages.sh demo
mkdir -p "$out"
build_attnc
if fetch_weights; then
    run_similarity
else
    say "the weights of MiniLM cannot be had (no network?): running examples/by_hand, whose weights are here"
    run_by_hand
fi
