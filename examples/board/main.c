/* Reads dates with the model of examples/dates on a microcontroller: no operating system, no heap, no library. Prints
 * each answer with a hash of the bits of all its logits, and what memory and how many instructions that took. The same
 * file with host.c is a program for this machine, which prints the same answers and hashes. */
#include "board.h"
#include "dates.h"

/* as in ../dates/dates.c */
static const char symbols[] = " 0123456789abcdefghijklmnopqrstuvwxyz',-./";
enum { START = sizeof symbols, END, ISO_LENGTH = 10 };

static const char *const texts[] = {"3rd of May '97", "jully 4, 1976", "thrusday 5 novmber 1955", "tue 11/20/2026"};

/* All of the memory besides the stack. The weights stay in flash, where the compiler has put them. Encoding and
 * decoding share a workspace, since they do not run at the same time. */
static _Alignas(DATES_ALIGNMENT) unsigned char source[DATES_SOURCE_BYTES], state[DATES_STATE_BYTES];
static _Alignas(DATES_ALIGNMENT) union {
    unsigned char encode[DATES_ENCODE_WORKSPACE_BYTES(1)], decode[DATES_DECODE_WORKSPACE_BYTES(1)];
} workspace;
static float logits[DATES_VOCAB];
static int32_t ids[DATES_SOURCE_SEQ];
static char iso[ISO_LENGTH + 1];

static int32_t id_of(char c) {
    if (c >= 'A' && c <= 'Z') c = (char)(c - 'A' + 'a');
    for (int32_t i = 0; symbols[i]; i++)
        if (symbols[i] == c) return i + 1;
    return 0;
}

/* FNV-1a of the bytes of the logits */
static uint32_t hash_logits(uint32_t hash) {
    const unsigned char *bytes = (const unsigned char *)logits;
    for (unsigned i = 0; i < sizeof logits; i++) hash = (hash ^ bytes[i]) * 16777619u;
    return hash;
}

static int read_date(const dates_ctx *ctx, const char *text, uint32_t *hash) {
    int32_t length = 0, token = START;
    for (; text[length] && length < DATES_SOURCE_SEQ; length++) ids[length] = id_of(text[length]);
    void *sources[] = {source}, *states[] = {state};
    dates_source input = {.size = sizeof input, .batch = 1, .lengths = &length, .source = ids};
    dates_encoded nothing = {.size = sizeof nothing};
    dates_decoded output = {.size = sizeof output, .logits = logits};
    int status = dates_encode(ctx, &input, &nothing, sources, workspace.encode, sizeof workspace.encode);
    if (!status) status = dates_state_init(state, sizeof state, source);
    for (int count = 0; !status && count <= ISO_LENGTH; count++) {
        iso[count < ISO_LENGTH ? count : ISO_LENGTH] = 0;
        status = dates_step(ctx, states, &token, 1, &output, workspace.decode, sizeof workspace.decode);
        *hash = hash_logits(*hash);
        token = 0;
        for (int32_t i = 1; i < DATES_VOCAB; i++)
            if (logits[i] > logits[token]) token = i;
        if (token == END) break;
        if (count < ISO_LENGTH) iso[count] = token > 0 && token < START ? symbols[token - 1] : '?';
    }
    return status;
}

int main(void) {
    dates_ctx ctx;
    int status = dates_init(&ctx, dates_embedded(), DATES_WEIGHTS_BYTES, NULL);
    if (!status) board_print("target "), board_print(dates_target(&ctx)), board_print("\n");
    for (unsigned i = 0; !status && i < sizeof texts / sizeof *texts; i++) {
        uint32_t hash = 2166136261u;
        const uint64_t begin = board_instructions();
        status = read_date(&ctx, texts[i], &hash);
        const uint64_t end = board_instructions();
        board_print("date ");
        board_print(iso);
        board_print(" ");
        board_print_hex(hash);
        board_print(" ");
        board_print(texts[i]);
        board_print("\n");
        board_print_number("instructions", end - begin);
    }
    if (status) board_print(dates_status_text(status)), board_print("\n");
    return status;
}
