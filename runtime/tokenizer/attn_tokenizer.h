/* Text to token ids and back, for the tokenizers of published models. C11 and C++17; needs Oniguruma, cJSON, utf8proc
 * and POSIX threads (-lonig -lcjson -lutf8proc -lpthread -lm). Independent of attn_runtime.h and of generated code.
 *
 * Four kinds of file are read, told apart by their contents:
 *
 *   tokenizer.json  of Hugging Face `tokenizers`: WordPiece (Schuster and Nakajima 2012; Devlin et al. 2018),
 *                   byte-level and other byte-pair encoding (Sennrich et al. 2016; Radford et al. 2019), Unigram (Kudo
 *                   2018) and word level, with the normalizers, pre-tokenizers, post-processors and decoders around
 *                   them
 *   vocab.txt       of an uncased BERT: UTF-8, one token a line; its id is the line's number, counted from 0
 *   tokenizer.bin   of llama2.c: pieces with scores; the pair with the best score is merged first
 *   a GGUF file     of llama.cpp: the tokenizer in its keys, of the models llama (pieces with scores), gpt2
 *                   (byte-level pairs, with the words that tokenizer.ggml.pre names) and bert (WordPiece)
 *
 * The ids are those of the PyPI package `tokenizers`, for every text. Bytes that are not UTF-8 are read as U+FFFD, one
 * for each maximal beginning of a character, as Python's decode("utf-8", "replace") does. A file that requires anything
 * unknown to this tokenizer is refused when it is opened. */
#ifndef ATTN_TOKENIZER_H
#define ATTN_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A tokenizer never changes after attn_tokenizer_open, so any number of threads may share it. */
typedef struct attn_tokenizer attn_tokenizer;

/* The negative results of attn_tokenizer_encode. */
enum {
    ATTN_TOKENIZER_BAD_CALL = -1,  /* a missing argument, more than 256 MiB of text, or too little room for the ids */
    ATTN_TOKENIZER_NO_MEMORY = -2, /* an allocation failed */
    ATTN_TOKENIZER_NO_TOKEN = -3,  /* the vocabulary lacks a character of the text, and a token for unknown ones */
    ATTN_TOKENIZER_PATTERN = -4,   /* the regular expressions of the file take too long for this text: more than five
                                    * seconds and two for each MB of it, or too many steps back in one search */
    ATTN_TOKENIZER_LONG = -5       /* the steps of the file make this text more than 64 times as long */
};

/* Reads one of these files, of at most 256 MiB; a GGUF file may be larger behind its keys. Returns NULL when the file
 * cannot be read, is too large, is damaged or requires anything unknown, and when an allocation fails; then `error`
 * [error_size] holds the reason as one line ended by NUL, cut where it is longer. `error` may be NULL when error_size
 * is 0. Callable from any thread. */
attn_tokenizer *attn_tokenizer_open(const char *path, char *error, size_t error_size);

/* The same of the contents of such a file, bytes [size], which are not used after the call. */
attn_tokenizer *attn_tokenizer_read(const void *bytes, size_t size, char *error, size_t error_size);

/* Rules for texts that the file does not have: a sum of these. */
enum {
    ATTN_TOKENIZER_LOWER_CASE = 1,   /* a text is converted to lower case before the normalizers of the file */
    ATTN_TOKENIZER_TRUNCATE_LEFT = 2 /* a text of too many ids loses its first ones, not its last ones */
};

/* The same as attn_tokenizer_open and attn_tokenizer_read, with such rules. The first is what sentence-transformers
 * makes of `do_lower_case`, the second what transformers makes of `truncation_side`. */
attn_tokenizer *attn_tokenizer_open_with(const char *path, unsigned rules, char *error, size_t error_size);
attn_tokenizer *attn_tokenizer_read_with(const void *bytes, size_t size, unsigned rules, char *error,
                                         size_t error_size);

/* Frees a tokenizer that no thread uses any more; NULL is allowed. */
void attn_tokenizer_free(attn_tokenizer *t);

/* The largest id plus one. A model whose vocabulary is smaller belongs to another tokenizer. */
int32_t attn_tokenizer_size(const attn_tokenizer *t);

/* The id of the token with this name, such as "[CLS]" or "</s>"; -1 when there is no such token. */
int32_t attn_tokenizer_id(const attn_tokenizer *t, const char *name);

/* The ids [*count] that encoding with `special` puts before a text, and after it, such as the ids of `<s>` and `</s>`;
 * the arrays belong to the tokenizer. A tokenizer.json has them in its post-processor, a GGUF file in
 * tokenizer.ggml.add_bos_token and add_eos_token, for which llama.cpp's rules hold where they are absent: a begin token
 * for llama, and for gpt2 with the words of Llama 3 and tekken; an end token for t5. vocab.txt has [CLS] and [SEP], and
 * tokenizer.bin the begin token. No other token belongs before a text, whatever a model's configuration names. */
const int32_t *attn_tokenizer_before(const attn_tokenizer *t, int *count);
const int32_t *attn_tokenizer_after(const attn_tokenizer *t, int *count);

/* One line that describes a negative result of attn_tokenizer_encode, or of attn_tokenizer_stream_feed. */
const char *attn_tokenizer_error_text(int result);

/* Encodes the text utf8 [bytes], which needs no NUL at its end and may be NULL when bytes is 0, as ids [capacity].
 * Returns the number of ids written, 0 to capacity, or one of the negative results above.
 *
 * With `special`, the tokens that the file puts around a text are written too (`[CLS] ... [SEP]`, `<s> ...`), and
 * capacity must hold at least those. A text with more ids than capacity keeps its first ids, or its last ones with
 * ATTN_TOKENIZER_TRUNCATE_LEFT, and the tokens around it stay, as when Hugging Face truncates. Without `special`, the
 * ids are those of the text alone.
 *
 * As in `tokenizers`, a special token that is spelled out in the text becomes that token's id: a text from a stranger
 * can contain "</s>". */
int attn_tokenizer_encode(const attn_tokenizer *t, const char *utf8, size_t bytes, bool special, int32_t *ids,
                          int capacity);

/* Returns how many bytes at the beginning of utf8 [bytes] are whole characters of UTF-8: all `bytes` of a valid text.
 * Callable from any thread. */
size_t attn_tokenizer_valid_bytes(const char *utf8, size_t bytes);

/* Encodes a pair of texts, as a cross encoder reads a query and a text, by the file's template for pairs (`[CLS] first
 * [SEP] second [SEP]`); a file without one has the texts behind each other, inside what stands around a text. Writes at
 * most `capacity` ids and, where `segments` is not NULL, the segment of each. Returns the number of ids, or a negative
 * result as above. Ids that do not fit are left out of the longer text, then of both in turns, as the strategy
 * `longest_first` of Hugging Face does; texts of more than a million ids count as equally long. */
int attn_tokenizer_encode_pair(const attn_tokenizer *t, const char *first, size_t first_bytes, const char *second,
                               size_t second_bytes, int32_t *ids, int32_t *segments, int capacity);

/* Decodes ids [count] into UTF-8 without a NUL at its end. Returns a buffer that the caller passes to free(), and sets
 * *bytes to its length; a count of 0 or less gives an empty text. Returns NULL when an argument is missing, an
 * allocation fails, or the decoders of the file take too long or make the text too long. Special tokens and unknown ids
 * are left out; bytes that form no character become U+FFFD. */
char *attn_tokenizer_decode(const attn_tokenizer *t, const int32_t *ids, int count, size_t *bytes);

/* Decodes ids one by one, as they are generated. A token alone has no text: the space before it, and a character of
 * which it has only some bytes, depend on the others. The texts that feed and finish give for a list of ids make,
 * one after the other, the text that attn_tokenizer_decode gives for the list. None of them ends inside a character.
 *
 * A stream uses its tokenizer, which must not be freed before it, and one thread at a time may use it. */
typedef struct attn_tokenizer_stream attn_tokenizer_stream;

/* Returns NULL without a tokenizer, and when an allocation fails. */
attn_tokenizer_stream *attn_tokenizer_stream_begin(const attn_tokenizer *t);
void attn_tokenizer_stream_free(attn_tokenizer_stream *stream); /* NULL is allowed */

/* Sets *text to what the id adds to the text, or completes in it, and returns its number of bytes, which may be 0; a
 * negative result as of attn_tokenizer_encode says what failed. The bytes belong to the stream, until its next call,
 * and no NUL ends them. */
int attn_tokenizer_stream_feed(attn_tokenizer_stream *stream, int32_t id, const char **text);

/* The same of what was kept back at the end of the text. Afterwards the stream is as new, for another text. */
int attn_tokenizer_stream_finish(attn_tokenizer_stream *stream, const char **text);

#ifdef __cplusplus
}
#endif

#endif
