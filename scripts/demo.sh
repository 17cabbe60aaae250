#!/bin/bash
# scripts/demo.sh [dates|similarity|story|page]: from a fresh clone to a model at work; what is there is not made again.
#
# Installs what is missing, builds attnc, writes the C of the model, and runs the example: asking on a terminal, with
# lines of examples/ elsewhere. `dates`, the default, and `story` have their weights here and need no network but for
# packages; `similarity` fetches those of MiniLM. Everything it makes is in build/.
#
# `story` tells with the decoder of MODEL: a folder with config.json, model.safetensors and tokenizer.json (or
# tokenizer.bin), or a llama2.c checkpoint with tokenizer.bin beside it. Without MODEL it takes stories260K in
# $ATTNC_FIXTURES/models, or the one in examples/story/model. Another kind of model is refused and leaves nothing half
# made.
# `page` makes pages of the dates and of the story in examples/, and serves them at PORT (8000) until it is ended; with
# ATTNC_DEMO_SERVE=0 it makes them alone.
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
    local sources=(examples/similarity/*.c runtime/tokenizer/*.c runtime/attn_runtime.c)
    if older "$out/minilm.attnw" build/attnc specs/minilm.attn "$out/model.safetensors"; then
        say "compiling specs/minilm.attn and packing its weights"
        build/attnc compile specs/minilm.attn -o "$out" --weights "$out/model.safetensors"
        touch "$out/minilm.attnw"
    fi
    if older "$out/similarity" "$out/minilm.c" "$out/minilm.h" "${sources[@]}" examples/similarity/*.h \
        runtime/tokenizer/*.h runtime/attn_runtime.h; then
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
        --labels source="$out/attention/source.txt" --labels target="$out/attention/target.txt" \
        --show text="$out/attention/text.txt" --show answer="$out/attention/answer.txt"
    say "where the model looked in the last date: $out/dates.html, for a browser"
}

fail() {
    say "$*" >&2
    exit 1
}

# story_files: sets `model`, a folder as Hugging Face saves it or a llama2.c checkpoint, and `tokenizer`. A model that
# lacks a file is refused before anything is made.
story_files() {
    local fixture=${ATTNC_FIXTURES:-}/models/stories260K folder wanted
    wanted="MODEL is a folder with config.json, model.safetensors and tokenizer.json or tokenizer.bin, or a llama2.c"
    wanted+=" checkpoint with tokenizer.bin beside it"
    model=${MODEL:-}
    if [ -z "$model" ]; then
        model=examples/story/model
        if [ -d "$fixture" ]; then model=$fixture; fi
    fi
    [ -e "$model" ] || fail "there is no $model: $wanted"
    folder=$model
    if [ ! -d "$model" ]; then
        folder=$(dirname "$model")
    else
        [ -f "$model/config.json" ] || fail "there is no $model/config.json: $wanted"
        [ -f "$(story_weights)" ] || fail "there is no $model/model.safetensors: $wanted"
    fi
    tokenizer=${TOKENIZER:-$folder/tokenizer.json}
    if [ -z "${TOKENIZER:-}" ] && [ ! -f "$tokenizer" ]; then tokenizer=$folder/tokenizer.bin; fi
    if [ -n "${TOKENIZER:-}" ]; then
        [ -f "$tokenizer" ] || fail "there is no $tokenizer, which TOKENIZER names"
    else
        [ -f "$tokenizer" ] ||
            fail "there is neither tokenizer.json nor tokenizer.bin in $folder: $wanted, or TOKENIZER=F"
    fi
}

# The weights of the folder `model`: one file, or the index of several.
story_weights() {
    local weights=$model/model.safetensors
    if [ ! -e "$weights" ] && [ -e "$weights.index.json" ]; then weights=$weights.index.json; fi
    echo "$weights"
}

# story_checkpoint: makes a folder of a llama2.c checkpoint, and that the `model`.
story_checkpoint() {
    if older "$out/from_llama2c" examples/story/from_llama2c.c; then
        $CC "${cflags[@]}" examples/story/from_llama2c.c runtime/attn_runtime.c -o "$out/from_llama2c" -lpthread
    fi
    say "reading $model"
    "$out/from_llama2c" "$model" -o "$out/story_model"
    model=$out/story_model
}

# story_is_told SPEC: refuses an imported model that continues no text.
story_is_told() {
    local wanted="MODEL is a decoder that was trained to continue texts, such as a llama or a gpt2"
    grep -q '^    decoder {' "$1" || fail "the model of $model is an encoder, which continues no text: $wanted"
    ! grep -q '^    encoder {' "$1" || fail "the model of $model needs a source for its encoder: $wanted"
    grep -q '^    head logits' "$1" || fail "the model of $model gives no logits of a next token: $wanted"
}

# story_make FOLDER: everything that telling needs, in FOLDER.new until it is whole.
story_make() {
    local new=$1.new
    trap 'rm -rf "$out/story.new"' EXIT
    rm -rf "$new"
    mkdir "$new"
    build/attnc import "$model" -o "$new/story.attn" --name story
    story_is_told "$new/story.attn"
    say "compiling the model of $model"
    build/attnc compile "$new/story.attn" -o "$new" --weights "$(story_weights)"
    $CC "${cflags[@]}" -I"$new" "${story_sources[@]}" "$new/story.c" -o "$new/story" "${tokenizer_libraries[@]}"
    echo "$made_from" >"$new/made_from"
    rm -rf "$1"
    mv "$new" "$1"
}

run_story() {
    local story_sources=(examples/story/story.c runtime/tokenizer/*.c runtime/attn_generate.c
        runtime/attn_rules.c runtime/attn_sample.c runtime/attn_runtime.c)
    local folder=$out/story made_from
    if [ ! -d "$model" ]; then story_checkpoint; fi
    made_from=$(cd "$model" && pwd)
    if [ "$(cat "$folder/made_from" 2>/dev/null)" != "$made_from" ] ||
        older "$folder/story" build/attnc "$model/config.json" "$(story_weights)" "${story_sources[@]}"; then
        story_make "$folder"
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

run_page() {
    local folder=$out/page dates=examples/dates story=examples/story/model port=${PORT:-8000}
    if older "$folder/dates/index.html" build/attnc $dates/dates.attn $dates/dates.safetensors \
        $dates/tokenizer.json; then
        say "making the page of $dates"
        build/attnc page $dates/dates.attn --weights $dates/dates.safetensors --tokenizer $dates/tokenizer.json \
            -o "$folder/dates"
    fi
    if older "$folder/story/index.html" build/attnc $story/model.safetensors $story/tokenizer.json; then
        say "making the page of $story"
        build/attnc import $story -o "$out/story_page.attn" --name story
        build/attnc page "$out/story_page.attn" --weights $story/model.safetensors --tokenizer $story -o "$folder/story"
    fi
    say "the pages are in $folder, for any server of files"
    if [ "${ATTNC_DEMO_SERVE:-1}" = 0 ]; then return; fi
    say "http://localhost:$port/dates/ and http://localhost:$port/story/ (Ctrl-C ends it)"
    exec python3 -m http.server "$port" --bind localhost --directory "$folder"
}

what=${1:-dates}
if [ "$what" = story ]; then story_files; fi
case $what in
dates) scripts/install_packages.sh build ;;
similarity | story) scripts/install_packages.sh demo ;;
page) scripts/install_packages.sh build page ;;
*) echo "usage: scripts/demo.sh [dates|similarity|story|page]" >&2; exit 2 ;;
esac
mkdir -p "$out"
build_attnc
if [ "$what" = dates ]; then
    run_dates
elif [ "$what" = story ]; then
    run_story
elif [ "$what" = page ]; then
    run_page
elif fetch_weights; then
    run_similarity
else
    say "the weights of MiniLM cannot be had (no network?); make demo runs a model whose weights are here" >&2
    exit 1
fi
