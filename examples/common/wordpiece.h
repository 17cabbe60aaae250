#ifndef EXAMPLES_WORDPIECE_H
#define EXAMPLES_WORDPIECE_H

#include <stddef.h>
#include <stdint.h>

/* The tokenizer of the uncased BERT models (Devlin et al. 2018, "BERT", section 3 and its released tokenization.py):
 * the text is cleaned, stripped of accents and lower-cased, split at white space and punctuation, and each word is cut
 * greedily into the longest pieces of the vocabulary. The ids are those of the PyPI package `tokenizers` with its
 * BertNormalizer, BertPreTokenizer and WordPiece at their defaults. */
typedef struct wordpiece wordpiece;

/* Reads a vocab.txt: UTF-8, one token a line, the id is the number of the line counted from 0, lines end in "\n" or
 * "\r\n". Returns NULL and writes one line into error (when error_size > 0) if the file cannot be read, is larger than
 * 64 MB, has an empty, repeated or broken token, or lacks [UNK], [CLS] or [SEP]; also when memory runs out. */
wordpiece *wordpiece_open(const char *vocab_txt_path, char *error, size_t error_size);

/* Frees what wordpiece_open returned; NULL is allowed. */
void wordpiece_free(wordpiece *vocab);

/* Writes [CLS], the pieces of the text and [SEP] to ids and returns how many ids these are, 2 to capacity. A text of
 * more pieces keeps its first capacity - 2, as Hugging Face truncates. utf8 may be NULL when bytes is 0; it needs no
 * final NUL, and bytes that are not UTF-8 are skipped. Returns -1 for a missing argument or a capacity below 2.
 * Allocates nothing and changes nothing in vocab, so threads may share it.
 *
 * As in `tokenizers`, a "[PAD]", "[UNK]", "[CLS]", "[SEP]" or "[MASK]" spelled out in the text gives that token's id
 * where the vocabulary has it: text from strangers can hold a [SEP] of its own. */
int wordpiece_encode(const wordpiece *vocab, const char *utf8, size_t bytes, int32_t *ids, int capacity);

#endif
