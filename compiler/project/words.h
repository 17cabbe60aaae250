/* words.h: the tokenizer of a model within attnc, which is compiled and loaded when a command needs it, so that attnc
 * itself needs none of its libraries. */
#ifndef WORDS_H
#define WORDS_H

#include "project.h"

typedef struct Words Words;

/* Compiles the runtime's tokenizer with the C compiler `cc`, or with the one that cc_find finds where `cc` is NULL, and
 * opens the file. Missing libraries of the tokenizer, and a file that it refuses, are failures. */
Words *words_open(Arena *arena, const TokenizerFile *file, const TextRules *rules, const char *cc);

/* The ids [*count] of a text, with the ids that the file puts around it. */
const int32_t *words_encode(const Words *words, const char *text, int64_t *count);
/* The same without the ids after the text. */
const int32_t *words_begin(const Words *words, const char *text, int64_t *count);

/* Encodes a text [bytes] as at most `room` ids, with those around it, and returns their number; a text with more loses
 * its last ones, or its first ones where the rules say so. Negative: the tokenizer refuses the text. Any number of
 * threads may call it. */
int words_ids(const Words *words, const char *text, size_t bytes, int32_t *ids, int room);
/* The hash of the tokenizer's file and of the rules. */
uint64_t words_hash(const Words *words);

/* The name of an id in the tokenizer's file, or NULL. */
const char *words_name(const Words *words, int64_t id);
/* The text [*bytes] of ids [count], without special tokens. */
const char *words_text(const Words *words, const int32_t *ids, int64_t count, size_t *bytes);

/* words_next returns what the next id of a text adds to it [*bytes], and words_end what is left at its end. They read
 * one text at a time, and their results live until the next of these calls. */
const char *words_next(Words *words, int32_t id, size_t *bytes);
const char *words_end(Words *words, size_t *bytes);

#endif
