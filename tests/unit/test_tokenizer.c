/* The tokenizer of the runtime on a vocab.txt; tests/tokenizers compares all kinds with another one's ids. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../runtime/tokenizer/attn_tokenizer.h"

enum { MAX_IDS = 4096, ERROR_SIZE = 256 };

/* The id of a token is its place here. */
static const char VOCAB[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n"
                            "hello\nworld\nun\n##aff\n##able\ncafe\n##s\na\n##a\nb\n"
                            "\xe4\xb8\xad\n\xe5\x9b\xbd\n!\n,\n[\n]\nsep\n"
                            "\xf0\x9f\x99\x82\ni\n\xcf\x83\n##\xce\xb1\n##\xcf\x83\n\xe1\x84\x80\n##\xe1\x85\xa1\n"
                            "\xe3\x80\x81\n#\n##\n\xe2\x82\xac\n";
enum {
    PAD, UNK, CLS, SEP, MASK, HELLO, WORLD, UN, AFF, ABLE, CAFE, S_MORE, A, A_MORE, B, ZHONG, GUO, BANG, COMMA, OPEN,
    CLOSE, SEP_WORD, SMILE, I, SIGMA, ALPHA_MORE, SIGMA_MORE, HANGUL_G, HANGUL_A_MORE, IDEOGRAPHIC_COMMA, HASH,
    HASHES, EURO, END = -1
};

static void write_temporary(char *path, const char *text, size_t size) {
    strcpy(path, "/tmp/tokenizer_XXXXXX");
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    FILE *file = fdopen(descriptor, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* The bytes give what their file gives, a tokenizer or the same reason behind another name. */
static attn_tokenizer *open_text(const char *text, size_t size, char *error) {
    char path[64], reason[ERROR_SIZE] = "";
    write_temporary(path, text, size);
    error[0] = '\0';
    attn_tokenizer *vocab = attn_tokenizer_open(path, error, ERROR_SIZE);
    unlink(path);
    attn_tokenizer *read = attn_tokenizer_read(text, size, reason, sizeof reason);
    assert_int_equal(read != NULL, vocab != NULL);
    if (!read) assert_string_equal(reason + strlen("tokenizer"), error + strlen(path));
    attn_tokenizer_free(read);
    return vocab;
}

static int open_vocab(void **state) {
    char error[ERROR_SIZE];
    *state = open_text(VOCAB, strlen(VOCAB), error);
    return *state ? 0 : -1;
}

static int close_vocab(void **state) {
    attn_tokenizer_free(*state);
    return 0;
}

/* The ids expected between [CLS] and [SEP], closed by END. */
static void expect_bytes(const attn_tokenizer *vocab, const char *text, size_t size, const int32_t *expected) {
    int32_t ids[MAX_IDS];
    int count = attn_tokenizer_encode(vocab, text, size, true, ids, MAX_IDS);
    assert_true(count >= 2);
    assert_int_equal(ids[0], CLS);
    assert_int_equal(ids[count - 1], SEP);
    for (int i = 1; i + 1 < count; i++) {
        assert_int_equal(ids[i], expected[i - 1]);
    }
    assert_int_equal(expected[count - 2], END);
}

#define EXPECT(text, ...) expect_bytes(*state, text, sizeof(text) - 1, (const int32_t[]){__VA_ARGS__, END})
#define EXPECT_NONE(text) expect_bytes(*state, text, sizeof(text) - 1, (const int32_t[]){END})

static void empty_text_is_two_tokens(void **state) {
    EXPECT_NONE("");
    EXPECT_NONE(" \t\r\n ");
    int32_t ids[2];
    assert_int_equal(attn_tokenizer_encode(*state, NULL, 0, true, ids, 2), 2);
}

static void longest_pieces_come_first(void **state) {
    EXPECT("hello world", HELLO, WORLD);
    EXPECT("unaffable", UN, AFF, ABLE);
    EXPECT("aaab", UNK);
    EXPECT("aaa hellos", A, A_MORE, A_MORE, HELLO, S_MORE);
    EXPECT("hellox worl", UNK, UNK);
    EXPECT("##s ##", HASH, HASH, UNK, HASH, HASH);
}

static void case_and_accents_go(void **state) {
    EXPECT("HeLLo W\xc3\x96RLD", HELLO, WORLD);
    EXPECT("caf\xc3\xa9 cafe\xcc\x81 CAF\xc3\x89", CAFE, CAFE, CAFE);
    EXPECT("\xc4\xb0", I);
    EXPECT_NONE("\xcc\x81 \xcd\x85");
    /* A final sigma is lower-cased like any other. */
    EXPECT("\xce\xa3\xce\x91\xce\xa3", SIGMA, ALPHA_MORE, SIGMA_MORE);
    EXPECT("\xea\xb0\x80", HANGUL_G, HANGUL_A_MORE);
}

static void cjk_stands_alone(void **state) {
    EXPECT("\xe4\xb8\xad\xe5\x9b\xbd", ZHONG, GUO);
    EXPECT("a\xe4\xb8\xad" "b", A, ZHONG, B);
    EXPECT("\xe4\xba\xac", UNK);
    EXPECT("a\xe3\x80\x80" "b\xe3\x80\x81", A, B, IDEOGRAPHIC_COMMA);
}

static void punctuation_splits(void **state) {
    EXPECT("hello,world!!", HELLO, COMMA, WORLD, BANG, BANG);
    EXPECT("a[b]", A, OPEN, B, CLOSE);
    EXPECT("a\xe2\x80\x94" "b", A, UNK, B);
    /* A currency sign is a symbol in Unicode, though not in ASCII's '$'. */
    EXPECT("\xe2\x82\xac", EURO);
    EXPECT("a\xe2\x82\xac", UNK);
    EXPECT("a$b", A, UNK, B);
}

static void emoji_are_words(void **state) {
    EXPECT("\xf0\x9f\x99\x82 hello", SMILE, HELLO);
    EXPECT("\xf0\x9f\x99\x82\xef\xb8\x8f", SMILE);
    EXPECT("a\xf0\x9f\x99\x82", UNK);
    EXPECT("\xf0\x9f\x98\x80", UNK);
}

static void controls_vanish(void **state) {
    EXPECT("hel\0lo", HELLO);
    EXPECT("hel\x01\x7f\xc2\xadlo", HELLO);
    EXPECT("hel\xe2\x80\x8blo\xef\xbb\xbf\xee\x80\x80", HELLO);
    EXPECT("hel\vlo a\tb\nb\rb", HELLO, A, B, B, B);
    EXPECT("a\xc2\x85\xc2\xa0" "b\xe2\x80\xa8" "b", A, B, B);
}

static void broken_utf8_vanishes(void **state) {
    EXPECT("hel\xfflo \x80world\xc3", HELLO, WORLD);
    EXPECT("hel\xef\xbf\xbdlo", HELLO);
    EXPECT("a\xc0\xaf\xed\xa0\x80\xf4\x90\x80\x80 b\xe4\xb8", A, B);
    EXPECT("\xe4\xb8hello", HELLO);
}

static void bytes_before_broken_utf8_are_counted(void **state) {
    (void)state;
    assert_int_equal(attn_tokenizer_valid_bytes(NULL, 0), 0);
    assert_int_equal(attn_tokenizer_valid_bytes("a\0\xc3\xa4\xf0\x9f\x98\x80", 8), 8);
    assert_int_equal(attn_tokenizer_valid_bytes("\xff", 1), 0);
    assert_int_equal(attn_tokenizer_valid_bytes("a\xc3\xa4\xed\xa0\x80", 6), 3);
    assert_int_equal(attn_tokenizer_valid_bytes("ab\xe4\xb8", 4), 2);
}

static void long_words_are_unknown(void **state) {
    char word[512];
    memset(word, 'a', sizeof word);
    int32_t ids[MAX_IDS];
    assert_int_equal(attn_tokenizer_encode(*state, word, 100, true, ids, MAX_IDS), 102);
    assert_int_equal(ids[1], A);
    assert_int_equal(ids[100], A_MORE);
    assert_int_equal(attn_tokenizer_encode(*state, word, 101, true, ids, MAX_IDS), 3);
    assert_int_equal(ids[1], UNK);
    /* The limit counts characters, after accents are gone. */
    for (int i = 0; i < 100; i++) {
        memcpy(word + 3 * i, "a\xcc\x81", 3);
    }
    assert_int_equal(attn_tokenizer_encode(*state, word, 300, true, ids, MAX_IDS), 102);
    word[300] = 'b';
    word[301] = ' ';
    word[302] = 'b';
    assert_int_equal(attn_tokenizer_encode(*state, word, 303, true, ids, MAX_IDS), 4);
    assert_int_equal(ids[1], UNK);
    assert_int_equal(ids[2], B);
}

static void special_tokens_in_the_text_count(void **state) {
    EXPECT("a [SEP]b[MASK][PAD]", A, SEP, B, MASK, PAD);
    EXPECT("hel[UNK]lo[CLS]", UNK, UNK, UNK, CLS);
    EXPECT("[sep] [SEP", OPEN, SEP_WORD, CLOSE, OPEN, SEP_WORD);
    EXPECT("[\x01SEP]", OPEN, SEP_WORD, CLOSE);
}

static void truncation_keeps_the_first(void **state) {
    const char *text = "hello unaffable world";
    int32_t ids[8];
    for (int capacity = 2; capacity <= 7; capacity++) {
        const int32_t all[] = {CLS, HELLO, UN, AFF, ABLE, WORLD};
        ids[capacity] = -7;
        assert_int_equal(attn_tokenizer_encode(*state, text, strlen(text), true, ids, capacity), capacity);
        assert_memory_equal(ids, all, (size_t)(capacity - 1) * sizeof *ids);
        assert_int_equal(ids[capacity - 1], SEP);
        assert_int_equal(ids[capacity], -7);
    }
    assert_int_equal(attn_tokenizer_encode(*state, text, strlen(text), true, ids, 8), 7);
}

static void bad_arguments_are_refused(void **state) {
    int32_t ids[4];
    assert_int_equal(attn_tokenizer_encode(NULL, "a", 1, true, ids, 4), -1);
    assert_int_equal(attn_tokenizer_encode(*state, NULL, 1, true, ids, 4), -1);
    assert_int_equal(attn_tokenizer_encode(*state, "a", 1, true, NULL, 4), -1);
    assert_int_equal(attn_tokenizer_encode(*state, "a", 1, true, ids, 1), -1);
    assert_int_equal(attn_tokenizer_encode(*state, "a", 1, true, ids, -5), -1);
    attn_tokenizer_free(NULL);
}

#define EXPECT_REFUSED(text, words)                                  \
    do {                                                             \
        char error[ERROR_SIZE];                                      \
        assert_null(open_text(text, sizeof(text) - 1, error));       \
        if (!strstr(error, words)) {                                 \
            fail_msg("\"%s\" does not say \"%s\"", error, words);    \
        }                                                            \
    } while (0)

static void bad_vocabularies_are_refused(void **state) {
    (void)state;
    EXPECT_REFUSED("", "no token [UNK]");
    EXPECT_REFUSED("[CLS]\n[SEP]\na\n", "no token [UNK]");
    EXPECT_REFUSED("[UNK]\n[SEP]\n[CLS\n", "no token [CLS]");
    EXPECT_REFUSED("[UNK]\n[CLS]\n[SEP]]\n", "no token [SEP]");
    EXPECT_REFUSED("[UNK]\n[CLS]\n\n[SEP]\n", "line 3: empty token");
    EXPECT_REFUSED("[UNK]\n[CLS]\n[SEP]\n\r\n", "line 4: empty token");
    EXPECT_REFUSED("[UNK]\na\n[CLS]\nb\n[SEP]\na\n", "the token 'a' stands there twice, as 1 and 5");
    EXPECT_REFUSED("[UNK]\n\xff\n[CLS]\n[SEP]\n", "line 2: not UTF-8");
    EXPECT_REFUSED("[UNK]\n[CLS]\n[SEP]\n\xe4\xb8", "line 4: not UTF-8");

    char error[ERROR_SIZE] = "";
    assert_null(attn_tokenizer_open("/nonexistent/vocab.txt", error, sizeof error));
    assert_non_null(strstr(error, "/nonexistent/vocab.txt: "));
    assert_null(attn_tokenizer_open("/tmp", error, sizeof error));
    assert_non_null(strstr(error, "/tmp: "));
    assert_null(attn_tokenizer_open(NULL, error, sizeof error));
    assert_null(attn_tokenizer_read(NULL, 1, error, sizeof error));
    assert_string_equal(error, "tokenizer: no bytes");
    assert_null(attn_tokenizer_read(VOCAB, ((size_t)256 << 20) + 1, error, sizeof error));
    assert_string_equal(error, "tokenizer: larger than 256 MB");
    assert_null(attn_tokenizer_read(NULL, 0, error, sizeof error));
    assert_null(attn_tokenizer_open("/nonexistent/vocab.txt", NULL, 0));
    char small[6];
    assert_null(attn_tokenizer_open("/nonexistent/vocab.txt", small, sizeof small));
    assert_string_equal(small, "/none");
}

/* Names are cut after 40 bytes, which may be within a character. */
static void messages_hold_whole_characters(void **state) {
    (void)state;
    for (int shift = 0; shift < 4; shift++) {
        char text[200], error[ERROR_SIZE] = "";
        int size = snprintf(text, sizeof text, "{\"model\": {\"type\": \"%.*s", shift, "xxx");
        for (int i = 0; i < 20; i++) size += snprintf(text + size, sizeof text - (size_t)size, "\xe2\x82\xac");
        size += snprintf(text + size, sizeof text - (size_t)size, "\"}}");
        assert_null(attn_tokenizer_read(text, (size_t)size, error, sizeof error));
        assert_non_null(strstr(error, "\xe2\x82\xac' is not known here"));
        size_t parts = 0;
        for (const char *c = error; *c; c++) parts += *c == '\xe2' ? 2 : (unsigned char)*c >= 0x80 ? (size_t)-1 : 0;
        assert_int_equal(parts, 0);
    }
    char error[ERROR_SIZE] = "";
    const char odd[] = "{\"model\": {\"type\": \"a\\u009b31m\\u001b[31m\"}}";
    assert_null(attn_tokenizer_read(odd, sizeof odd - 1, error, sizeof error));
    assert_non_null(strstr(error, "'a??31m?[31m'"));
}

static void huge_files_are_refused(void **state) {
    (void)state;
    char path[64], error[ERROR_SIZE] = "";
    write_temporary(path, "[UNK]\n", 6);
    assert_int_equal(truncate(path, ((off_t)256 << 20) + 1), 0);
    assert_null(attn_tokenizer_open(path, error, sizeof error));
    unlink(path);
    assert_non_null(strstr(error, "larger than 256 MB"));
}

static void line_ends_may_be_crlf_or_missing(void **state) {
    (void)state;
    char error[ERROR_SIZE];
    const char text[] = "a\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\nb";
    attn_tokenizer *vocab = open_text(text, sizeof text - 1, error);
    assert_non_null(vocab);
    int32_t ids[8];
    assert_int_equal(attn_tokenizer_encode(vocab, "b a [PAD]", 9, true, ids, 8), 7);
    assert_memory_equal(ids, ((const int32_t[]){2, 4, 0, 1, 1, 1, 3}), 7 * sizeof *ids);
    attn_tokenizer_free(vocab);
}

typedef struct {
    const attn_tokenizer *vocab;
    int wrong;
} ThreadWork;

static void *encode_often(void *argument) {
    ThreadWork *work = argument;
    const int32_t expected[] = {CLS, UN, AFF, ABLE, ZHONG, CAFE, SEP};
    const char *text = "unaffable\xe4\xb8\xad Caf\xc3\xa9";
    for (int i = 0; i < 500; i++) {
        int32_t ids[16];
        int count = attn_tokenizer_encode(work->vocab, text, strlen(text), true, ids, 16);
        work->wrong += count != 7 || memcmp(ids, expected, sizeof expected) != 0;
    }
    return NULL;
}

static void threads_share_a_vocabulary(void **state) {
    pthread_t threads[4];
    ThreadWork work[4];
    for (int i = 0; i < 4; i++) {
        work[i] = (ThreadWork){*state, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, encode_often, &work[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(work[i].wrong, 0);
    }
}

static void ids_have_names(void **state) {
    assert_int_equal(attn_tokenizer_id(*state, "[CLS]"), CLS);
    assert_int_equal(attn_tokenizer_id(*state, "##aff"), AFF);
    assert_int_equal(attn_tokenizer_id(*state, "aff"), -1);
    assert_int_equal(attn_tokenizer_size(*state), EURO + 1);
}

static void nothing_is_put_around_when_not_wanted(void **state) {
    int32_t ids[4];
    assert_int_equal(attn_tokenizer_encode(*state, "hello [SEP] world", 17, false, ids, 4), 3);
    assert_memory_equal(ids, ((const int32_t[]){HELLO, SEP, WORLD}), 3 * sizeof *ids);
    assert_int_equal(attn_tokenizer_encode(*state, "", 0, false, ids, 1), 0);
}

static void ids_become_text(void **state) {
    const int32_t ids[] = {CLS, UN, AFF, ABLE, COMMA, HELLO, BANG, 999, -1, SEP};
    size_t bytes = 0;
    char *text = attn_tokenizer_decode(*state, ids, 10, &bytes);
    assert_non_null(text);
    assert_int_equal(bytes, 17);
    assert_memory_equal(text, "unaffable, hello!", bytes);
    free(text);
    text = attn_tokenizer_decode(*state, NULL, 0, &bytes);
    assert_non_null(text);
    assert_int_equal(bytes, 0);
    free(text);
    assert_null(attn_tokenizer_decode(*state, NULL, 1, &bytes));
    assert_null(attn_tokenizer_decode(NULL, ids, 1, &bytes));
    assert_null(attn_tokenizer_decode(*state, ids, 1, NULL));
}

int main(void) {
    const struct CMUnitTest with_vocab[] = {
        cmocka_unit_test(empty_text_is_two_tokens),
        cmocka_unit_test(longest_pieces_come_first),
        cmocka_unit_test(case_and_accents_go),
        cmocka_unit_test(cjk_stands_alone),
        cmocka_unit_test(punctuation_splits),
        cmocka_unit_test(emoji_are_words),
        cmocka_unit_test(controls_vanish),
        cmocka_unit_test(broken_utf8_vanishes),
        cmocka_unit_test(bytes_before_broken_utf8_are_counted),
        cmocka_unit_test(long_words_are_unknown),
        cmocka_unit_test(special_tokens_in_the_text_count),
        cmocka_unit_test(truncation_keeps_the_first),
        cmocka_unit_test(bad_arguments_are_refused),
        cmocka_unit_test(bad_vocabularies_are_refused),
        cmocka_unit_test(messages_hold_whole_characters),
        cmocka_unit_test(huge_files_are_refused),
        cmocka_unit_test(line_ends_may_be_crlf_or_missing),
        cmocka_unit_test(threads_share_a_vocabulary),
        cmocka_unit_test(ids_have_names),
        cmocka_unit_test(nothing_is_put_around_when_not_wanted),
        cmocka_unit_test(ids_become_text),
    };
    return cmocka_run_group_tests_name("tokenizer", with_vocab, open_vocab, close_vocab);
}
