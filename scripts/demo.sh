#!/bin/bash
# scripts/demo.sh [dates|similarity]: from a fresh clone to a model at work; what is already there is not made again.
#
# Installs what is missing, builds attnc, writes the C of the model, and runs the example: asking on a terminal, with
# lines of examples/ elsewhere. `dates`, the default, has its weights here and needs no network but for packages;
# `similarity` fetches those of MiniLM. Everything it makes is in build/.
# Environment: CC (clang); ATTNC_DEMO_OFFLINE=1 fetches nothing; ATTNC_DEMO_FOLDER (build/demo) holds what is made.
set -eu
cd "$(dirname "$0")/.."

export CC=${CC:-clang}
cflags=(-std=c11 -O2)
tokenizer_libraries=(-lonig -lcjson -lutf8proc -lpthread -lm)
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
    local sources=(examples/similarity/*.c examples/common/tokenizer/*.c runtime/attn_runtime.c)
    if older "$out/minilm.attnw" build/attnc specs/minilm.attn "$out/model.safetensors"; then
        say "compiling specs/minilm.attn and packing its weights"
        build/attnc compile specs/minilm.attn -o "$out" --weights "$out/model.safetensors"
        touch "$out/minilm.attnw"
    fi
    if older "$out/similarity" "$out/minilm.c" "$out/minilm.h" "${sources[@]}" examples/similarity/*.h \
        examples/common/tokenizer/*.h runtime/attn_runtime.h; then
        say "building examples/similarity"
        $CC "${cflags[@]}" -I"$out" "${sources[@]}" "$out/minilm.c" -o "$out/similarity" "${tokenizer_libraries[@]}"
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

run_dates() {
    local folder=examples/dates
    if older "$out/dates" build/attnc $folder/dates.attn $folder/dates.safetensors $folder/dates.c; then
        say "compiling $folder/dates.attn, with its weights"
        build/attnc compile $folder/dates.attn -o "$out" --embed-weights --weights $folder/dates.safetensors
        $CC "${cflags[@]}" -I"$out" $folder/dates.c "$out/dates.c" -o "$out/dates" -lm
    fi
    mkdir -p "$out/attention"
    rm -f "$out"/attention/*
    if [ -t 0 ] && [ -t 1 ]; then
        say "write dates as you would on paper, with typos if you like; an end of file (Ctrl-D) ends it"
        "$out/dates" --ask --time --map "$out/attention"
    else
        say "dates: $folder/dates.txt"
        "$out/dates" --file $folder/dates.txt --time --map "$out/attention"
    fi
    [ -e "$out/attention/target.npy" ] || return 0
    build/attnc map $folder/dates.attn --weights $folder/dates.safetensors --engine interp -o "$out/dates.html" \
        --in source="$out/attention/source.npy" --in target="$out/attention/target.npy" \
        --labels source="$out/attention/source.txt" --labels target="$out/attention/target.txt"
    say "where the model looked in the last date: $out/dates.html, for a browser"
}

what=${1:-dates}
case $what in
dates) scripts/install_packages.sh build ;;
similarity) scripts/install_packages.sh demo ;;
*) echo "usage: scripts/demo.sh [dates|similarity]" >&2; exit 2 ;;
esac
mkdir -p "$out"
build_attnc
if [ "$what" = dates ]; then
    run_dates
elif fetch_weights; then
    run_similarity
else
    say "the weights of MiniLM cannot be had (no network?); make demo runs a model whose weights are here" >&2
    exit 1
fi
