#!/bin/bash
# scripts/demo.sh [dates|similarity|story]: from a fresh clone to a model at work; what is there is not made again.
#
# Installs what is missing, builds attnc, writes the C of the model, and runs the example: asking on a terminal, with
# lines of examples/ elsewhere. `dates`, the default, and `story` have their weights here and need no network but for
# packages; `similarity` fetches those of MiniLM. Everything it makes is in build/.
#
# `story` tells with the llama of MODEL: a folder with config.json, model.safetensors and tokenizer.json (or
# tokenizer.bin), or a llama2.c checkpoint with tokenizer.bin beside it. Without MODEL it takes stories260K in
# $ATTNC_FIXTURES/models, or the one in examples/story/model.
# Environment: CC (clang); MODEL and TOKENIZER, for story; ATTNC_DEMO_OFFLINE=1 fetches nothing; ATTNC_DEMO_FOLDER
# (build/demo) holds what is made.
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

fail() {
    say "$*" >&2
    exit 1
}

# story_model: sets `model`, a folder as Hugging Face saves it, `weights` in it, and `tokenizer`.
story_model() {
    local fixture=${ATTNC_FIXTURES:-}/models/stories260K folder
    model=${MODEL:-}
    if [ -z "$model" ]; then
        model=examples/story/model
        if [ -d "$fixture" ]; then model=$fixture; fi
    fi
    [ -e "$model" ] || fail "there is no $model"
    folder=$model
    if [ ! -d "$model" ]; then
        folder=$(dirname "$model")
        if older "$out/from_llama2c" examples/story/from_llama2c.c; then
            $CC "${cflags[@]}" examples/story/from_llama2c.c runtime/attn_runtime.c -o "$out/from_llama2c" -lpthread
        fi
        say "reading $model"
        "$out/from_llama2c" "$model" -o "$out/story_model"
        model=$out/story_model
    fi
    weights=$model/model.safetensors
    if [ ! -e "$weights" ] && [ -e "$weights.index.json" ]; then weights=$weights.index.json; fi
    tokenizer=${TOKENIZER:-$folder/tokenizer.json}
    if [ -z "${TOKENIZER:-}" ] && [ ! -e "$tokenizer" ]; then tokenizer=$folder/tokenizer.bin; fi
    for file in "$model/config.json" "$weights" "$tokenizer"; do
        [ -e "$file" ] || fail "there is no $file; MODEL is a folder with config.json, model.safetensors and" \
            "tokenizer.json, or a llama2.c checkpoint with tokenizer.bin beside it"
    done
}

run_story() {
    local sources=(examples/story/story.c examples/common/tokenizer/*.c runtime/attn_generate.c runtime/attn_runtime.c)
    local model weights tokenizer
    story_model
    local folder=$out/story made_from
    made_from=$(cd "$model" && pwd)
    mkdir -p "$folder"
    if [ "$(cat "$folder/made_from" 2>/dev/null)" != "$made_from" ] ||
        older "$folder/story" build/attnc "$model/config.json" "$weights" "${sources[@]}"; then
        rm -f "$folder/made_from"
        say "compiling the model of $model"
        build/attnc import "$model" -o "$folder/story.attn" --name story
        build/attnc compile "$folder/story.attn" -o "$folder" --weights "$weights"
        $CC "${cflags[@]}" -I"$folder" "${sources[@]}" "$folder/story.c" -o "$folder/story" "${tokenizer_libraries[@]}"
        echo "$made_from" >"$folder/made_from"
    fi
    local command=("$folder/story" --weights "$folder/story.attnw" --tokenizer "$tokenizer" --time)
    if [ -t 0 ] && [ -t 1 ]; then
        say "write how a story begins; an end of file (Ctrl-D) ends it"
        "${command[@]}" --ask
    else
        say "beginnings: examples/story/beginnings.txt"
        "${command[@]}" <examples/story/beginnings.txt
    fi
}

what=${1:-dates}
case $what in
dates) scripts/install_packages.sh build ;;
similarity | story) scripts/install_packages.sh demo ;;
*) echo "usage: scripts/demo.sh [dates|similarity|story]" >&2; exit 2 ;;
esac
mkdir -p "$out"
build_attnc
if [ "$what" = dates ]; then
    run_dates
elif [ "$what" = story ]; then
    run_story
elif fetch_weights; then
    run_similarity
else
    say "the weights of MiniLM cannot be had (no network?); make demo runs a model whose weights are here" >&2
    exit 1
fi
