#ifndef EXAMPLES_TOKENIZER_H
#define EXAMPLES_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Text to token ids and back, for the models that people publish. Three kinds of file are read, told apart by what is
 * in them:
 *
 *   tokenizer.json  of Hugging Face `tokenizers`: WordPiece (Schuster and Nakajima 2012; Devlin et al. 2018),
 *                   byte-level and other byte-pair encoding (Sennrich et al. 2016; Radford et al. 2019), Unigram (Kudo
 *                   2018), word level, with the normalizers, pre-tokenizers, post-processors and decoders around them
 *   vocab.txt       of an uncased BERT: UTF-8, one token a line, the id is the number of the line counted from 0
 *   tokenizer.bin   of llama2.c: pieces with scores, merged best score first
 *
 * The ids are those of the PyPI package `tokenizers`, for every text: bytes that are not UTF-8 read as U+FFFD, one for
 * each maximal beginning of a character, as in Python's decode("utf-8", "replace"). What a file asks for that this
 * tokenizer cannot do is an error when it is opened. */
typedef struct tokenizer tokenizer;

/* Reads one of these files. Returns NULL and writes one line into error (when error_size > 0) if it cannot be read, is
 * larger than 256 MB, is damaged, or asks for something unknown; also when memory runs out. */
tokenizer *tokenizer_open(const char *path, char *error, size_t error_size);

/* Frees what tokenizer_open returned; NULL is allowed. */
void tokenizer_free(tokenizer *t);

/* One more than the largest id: a model whose vocabulary is smaller belongs to another tokenizer. */
int32_t tokenizer_size(const tokenizer *t);

/* The id of a token by its name, such as "[CLS]" or "</s>", or -1. */
int32_t tokenizer_id(const tokenizer *t, const char *name);

enum { TOKENIZER_BAD_CALL = -1, TOKENIZER_NO_MEMORY = -2, TOKENIZER_NO_TOKEN = -3, TOKENIZER_PATTERN = -4 };

/* One line about a negative result. */
const char *tokenizer_error_text(int result);

/* Writes the ids of a text and returns how many these are, at most capacity; a text of more ids keeps its first, as
 * Hugging Face truncates: what the tokenizer puts around a text (`[CLS] … [SEP]`, `<s> …`) goes around what is kept.
 * With `special` false nothing is put around it. utf8 may be NULL when bytes is 0 and needs no final NUL. Changes
 * nothing in t, so threads may share it.
 *
 * As in `tokenizers`, a special token that is spelled out in the text gives that token's id: text from strangers can
 * hold a "</s>" of its own.
 *
 * Returns TOKENIZER_BAD_CALL for a missing argument or a capacity below 1 or below what is put around the text,
 * TOKENIZER_NO_MEMORY, TOKENIZER_NO_TOKEN where the vocabulary has neither the text's characters nor a token for
 * unknown ones, TOKENIZER_PATTERN where the file's regular expression takes too long for this text. */
int tokenizer_encode(const tokenizer *t, const char *utf8, size_t bytes, bool special, int32_t *ids, int capacity);

/* The text of count ids, without special tokens, as UTF-8 without a final NUL: a buffer for free(), its length in
 * *bytes. Unknown ids are left out; bytes that make no character become U+FFFD. A text that is being generated is best
 * shown by decoding all of its ids again and printing what is new, but for a U+FFFD at its end, which may yet become a
 * character. Returns NULL when memory runs out or an argument is missing. */
char *tokenizer_decode(const tokenizer *t, const int32_t *ids, int count, size_t *bytes);

#endif
