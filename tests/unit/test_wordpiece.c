/* Run from the root of the repository. An argument names another folder of cases, as tests/parity/wordpiece_cases.py
 * writes them, in place of the committed one. */
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

#include "../../examples/common/wordpiece.h"

enum { MAX_IDS = 4096, ERROR_SIZE = 256 };

static const char *cases_folder = "tests/parity/fixtures/wordpiece";

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
    strcpy(path, "/tmp/wordpiece_XXXXXX");
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    FILE *file = fdopen(descriptor, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static wordpiece *open_text(const char *text, size_t size, char *error) {
    char path[64];
    write_temporary(path, text, size);
    error[0] = '\0';
    wordpiece *vocab = wordpiece_open(path, error, ERROR_SIZE);
    unlink(path);
    return vocab;
}

static int open_vocab(void **state) {
    char error[ERROR_SIZE];
    *state = open_text(VOCAB, strlen(VOCAB), error);
    return *state ? 0 : -1;
}

static int close_vocab(void **state) {
    wordpiece_free(*state);
    return 0;
}

/* The ids expected between [CLS] and [SEP], closed by END. */
static void expect_bytes(const wordpiece *vocab, const char *text, size_t size, const int32_t *expected) {
    int32_t ids[MAX_IDS];
    int count = wordpiece_encode(vocab, text, size, ids, MAX_IDS);
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
    assert_int_equal(wordpiece_encode(*state, NULL, 0, ids, 2), 2);
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

static void long_words_are_unknown(void **state) {
    char word[512];
    memset(word, 'a', sizeof word);
    int32_t ids[MAX_IDS];
    assert_int_equal(wordpiece_encode(*state, word, 100, ids, MAX_IDS), 102);
    assert_int_equal(ids[1], A);
    assert_int_equal(ids[100], A_MORE);
    assert_int_equal(wordpiece_encode(*state, word, 101, ids, MAX_IDS), 3);
    assert_int_equal(ids[1], UNK);
    /* The limit counts characters, after accents are gone. */
    for (int i = 0; i < 100; i++) {
        memcpy(word + 3 * i, "a\xcc\x81", 3);
    }
    assert_int_equal(wordpiece_encode(*state, word, 300, ids, MAX_IDS), 102);
    word[300] = 'b';
    word[301] = ' ';
    word[302] = 'b';
    assert_int_equal(wordpiece_encode(*state, word, 303, ids, MAX_IDS), 4);
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
        assert_int_equal(wordpiece_encode(*state, text, strlen(text), ids, capacity), capacity);
        assert_memory_equal(ids, all, (size_t)(capacity - 1) * sizeof *ids);
        assert_int_equal(ids[capacity - 1], SEP);
        assert_int_equal(ids[capacity], -7);
    }
    assert_int_equal(wordpiece_encode(*state, text, strlen(text), ids, 8), 7);
}

static void bad_arguments_are_refused(void **state) {
    int32_t ids[4];
    assert_int_equal(wordpiece_encode(NULL, "a", 1, ids, 4), -1);
    assert_int_equal(wordpiece_encode(*state, NULL, 1, ids, 4), -1);
    assert_int_equal(wordpiece_encode(*state, "a", 1, NULL, 4), -1);
    assert_int_equal(wordpiece_encode(*state, "a", 1, ids, 1), -1);
    assert_int_equal(wordpiece_encode(*state, "a", 1, ids, -5), -1);
    wordpiece_free(NULL);
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
    EXPECT_REFUSED("[UNK]\n[CLS]\n\n[SEP]\n", ":3: empty token");
    EXPECT_REFUSED("[UNK]\n[CLS]\n[SEP]\n\r\n", ":4: empty token");
    EXPECT_REFUSED("[UNK]\na\n[CLS]\nb\n[SEP]\na\n", ":6: repeats the token of line 2");
    EXPECT_REFUSED("[UNK]\n\xff\n[CLS]\n[SEP]\n", ":2: not UTF-8");
    EXPECT_REFUSED("[UNK]\n[CLS]\n[SEP]\n\xe4\xb8", ":4: not UTF-8");

    char error[ERROR_SIZE] = "";
    assert_null(wordpiece_open("/nonexistent/vocab.txt", error, sizeof error));
    assert_non_null(strstr(error, "/nonexistent/vocab.txt: "));
    assert_null(wordpiece_open("/tmp", error, sizeof error));
    assert_non_null(strstr(error, "/tmp: "));
    assert_null(wordpiece_open(NULL, error, sizeof error));
    assert_null(wordpiece_open("/nonexistent/vocab.txt", NULL, 0));
    char small[6];
    assert_null(wordpiece_open("/nonexistent/vocab.txt", small, sizeof small));
    assert_string_equal(small, "/none");
}

static void huge_files_are_refused(void **state) {
    (void)state;
    char path[64], error[ERROR_SIZE] = "";
    write_temporary(path, "[UNK]\n", 6);
    assert_int_equal(truncate(path, ((off_t)64 << 20) + 1), 0);
    assert_null(wordpiece_open(path, error, sizeof error));
    unlink(path);
    assert_non_null(strstr(error, "larger than 64 MB"));
}

static void line_ends_may_be_crlf_or_missing(void **state) {
    (void)state;
    char error[ERROR_SIZE];
    const char text[] = "a\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\nb";
    wordpiece *vocab = open_text(text, sizeof text - 1, error);
    assert_non_null(vocab);
    int32_t ids[8];
    assert_int_equal(wordpiece_encode(vocab, "b a [PAD]", 9, ids, 8), 7);
    assert_memory_equal(ids, ((const int32_t[]){2, 4, 0, 1, 1, 1, 3}), 7 * sizeof *ids);
    wordpiece_free(vocab);
}

typedef struct {
    const wordpiece *vocab;
    int wrong;
} ThreadWork;

static void *encode_often(void *argument) {
    ThreadWork *work = argument;
    const int32_t expected[] = {CLS, UN, AFF, ABLE, ZHONG, CAFE, SEP};
    const char *text = "unaffable\xe4\xb8\xad Caf\xc3\xa9";
    for (int i = 0; i < 500; i++) {
        int32_t ids[16];
        int count = wordpiece_encode(work->vocab, text, strlen(text), ids, 16);
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

/* ---- the cases answered by PyPI tokenizers ---- */

static FILE *open_case_file(const char *name) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", cases_folder, name);
    FILE *file = fopen(path, "rb");
    if (!file) {
        fail_msg("cannot read %s", path);
    }
    return file;
}

static int hex_digit(char digit) {
    return digit <= '9' ? digit - '0' : digit - 'a' + 10;
}

/* Turns \xHH into bytes, in place; the final newline goes. */
static size_t unescape(char *line, size_t size) {
    size_t out = 0;
    for (size_t in = 0; in < size && line[in] != '\n';) {
        if (line[in] == '\\' && in + 3 < size) {
            line[out++] = (char)(hex_digit(line[in + 2]) * 16 + hex_digit(line[in + 3]));
            in += 4;
        } else {
            line[out++] = line[in++];
        }
    }
    return out;
}

static int read_ids(char *line, int32_t *ids) {
    int count = 0;
    for (char *end, *at = line; count < MAX_IDS; at = end) {
        long id = strtol(at, &end, 10);
        if (end == at) {
            break;
        }
        ids[count++] = (int32_t)id;
    }
    return count;
}

static void cases_agree_with_tokenizers(void **state) {
    (void)state;
    char path[1024], error[ERROR_SIZE];
    snprintf(path, sizeof path, "%s/vocab.txt", cases_folder);
    wordpiece *vocab = wordpiece_open(path, error, sizeof error);
    if (!vocab) {
        fail_msg("%s", error);
    }
    FILE *lines = open_case_file("lines.txt"), *answers = open_case_file("ids.txt");
    char *line = NULL, *answer = NULL;
    size_t line_room = 0, answer_room = 0;
    ssize_t size;
    int number = 0, wrong = 0;
    while ((size = getline(&line, &line_room, lines)) > 0) {
        number++;
        assert_true(getline(&answer, &answer_room, answers) > 0);
        int32_t expected[MAX_IDS], ids[MAX_IDS];
        int expected_count = read_ids(answer, expected);
        int count = wordpiece_encode(vocab, line, unescape(line, (size_t)size), ids, MAX_IDS);
        if (count != expected_count || memcmp(ids, expected, (size_t)count * sizeof *ids) != 0) {
            wrong++;
            print_message("%s/lines.txt:%d differs\n", cases_folder, number);
        }
    }
    free(line);
    free(answer);
    fclose(lines);
    fclose(answers);
    wordpiece_free(vocab);
    print_message("%d lines, %d differ\n", number, wrong);
    assert_true(number > 0);
    assert_int_equal(wrong, 0);
}

int main(int argc, char **argv) {
    if (argc > 1) {
        cases_folder = argv[1];
    }
    const struct CMUnitTest with_vocab[] = {
        cmocka_unit_test(empty_text_is_two_tokens),
        cmocka_unit_test(longest_pieces_come_first),
        cmocka_unit_test(case_and_accents_go),
        cmocka_unit_test(cjk_stands_alone),
        cmocka_unit_test(punctuation_splits),
        cmocka_unit_test(emoji_are_words),
        cmocka_unit_test(controls_vanish),
        cmocka_unit_test(broken_utf8_vanishes),
        cmocka_unit_test(long_words_are_unknown),
        cmocka_unit_test(special_tokens_in_the_text_count),
        cmocka_unit_test(truncation_keeps_the_first),
        cmocka_unit_test(bad_arguments_are_refused),
        cmocka_unit_test(bad_vocabularies_are_refused),
        cmocka_unit_test(huge_files_are_refused),
        cmocka_unit_test(line_ends_may_be_crlf_or_missing),
        cmocka_unit_test(threads_share_a_vocabulary),
        cmocka_unit_test(cases_agree_with_tokenizers),
    };
    return cmocka_run_group_tests_name("wordpiece", with_vocab, open_vocab, close_vocab);
}
