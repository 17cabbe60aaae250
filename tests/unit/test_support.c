/* test_support.c: arenas, texts, checked sums, failures and reports, files written aside, nearest words, and running
 * out of memory. */
#include "scratch_folder.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <sys/wait.h>

/* cmocka has a macro `fail`; (fail)(…) is ours. */
static int files_in_folder(void) {
    int count = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));) count += entry->d_name[0] != '.';
    closedir(dir);
    return count;
}

static void holds(const char *path, const char *text) {
    size_t size;
    char *data = file_read(arena, path, 1000, &size);
    assert_int_equal(size, strlen(text));
    assert_memory_equal(data, text, size);
}

/* ------------------------------------------------------------------ arena */

static void alignment(void **state) {
    (void)state;
    for (size_t bytes = 0; bytes < 3000; bytes += 1 + bytes / 7) {
        char *p = arena_alloc(arena, bytes);
        assert_int_equal((uintptr_t)p % (bytes >= 64 ? 64 : 16), 0);
        for (size_t i = 0; i < bytes; i++) assert_int_equal(p[i], 0);
        memset(p, 0xff, bytes);
    }
}

static void big_blocks(void **state) {
    (void)state;
    static const size_t sizes[] = {10, 16384, 16385, 65535, 65536, 65537, 100, 1 << 20, 5 << 20, 20};
    enum { N = sizeof sizes / sizeof sizes[0] };
    unsigned char *all[N];
    for (int i = 0; i < N; i++) {
        all[i] = arena_alloc(arena, sizes[i]);
        assert_int_equal((uintptr_t)all[i] % 16, 0);
        memset(all[i], i + 1, sizes[i]);
    }
    for (int i = 0; i < N; i++)
        for (size_t j = 0; j < sizes[i]; j++)
            if (all[i][j] != i + 1) fail_msg("block %d is overwritten at %zu", i, j);
}

static char order[8];

static void note_cleanup(void *with) { strcat(order, with); }

static void cleanup_order(void **state) {
    (void)state;
    static char a[] = "a", b[] = "b", c[] = "c";
    Arena *own = arena_new();
    order[0] = '\0';
    arena_on_free(own, note_cleanup, a);
    arena_alloc(own, 100000);
    arena_on_free(own, note_cleanup, b);
    arena_on_free(own, note_cleanup, c);
    assert_string_equal(order, "");
    arena_clear(own);
    const char *again = arena_alloc(own, 40000); /* in a block that was in use */
    for (int i = 0; i < 40000; i++) assert_int_equal(again[i], 0);
    arena_free(own);
    assert_string_equal(order, "cba");
    arena_free(NULL);
}

static void refuse_array(size_t count, size_t size) {
    REFUSED(arena_array(arena, count, size), EXIT_MEMORY, "");
    assert_string_equal(trap.message, "out of memory");
}

static void overflow(void **state) {
    (void)state;
    static const size_t counts[][2] = {{SIZE_MAX, 2}, {SIZE_MAX / 2, 3}, {SIZE_MAX, 1}, {SIZE_MAX - 64, 1},
                                       {1, SIZE_MAX}, {SIZE_MAX / 16, 17}};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) refuse_array(counts[i][0], counts[i][1]);
    REFUSED(arena_copy(arena, "", SIZE_MAX), EXIT_MEMORY, "");
    assert_non_null(arena_array(arena, 0, SIZE_MAX));
    assert_non_null(arena_array(arena, SIZE_MAX, 0));
    assert_non_null(arena_alloc(arena, 10)); /* still of use */
}

static void texts(void **state) {
    (void)state;
    Text text = text_new(arena);
    assert_string_equal(text.data, "");
    for (int i = 0; i < 3000; i++) text_printf(&text, "%d,", i % 10);
    assert_int_equal(text.size, 6000);
    assert_int_equal(text.data[6000], 0);
    assert_memory_equal(text.data + 5990, "5,6,7,8,9,", 10);
    Text numbers = text_new(arena);
    text_add_int(&numbers, INT64_MIN);
    text_printf(&numbers, " %d %lld%% %s %05.1f", INT_MIN, (long long)INT64_MAX, "s", 1.25);
    assert_string_equal(numbers.data, "-9223372036854775808 -2147483648 9223372036854775807% s 001.2");
    assert_int_equal(numbers.size, strlen(numbers.data));
    char *wide = arena_printf(arena, "%5000d|%s", 7, "end");
    assert_int_equal(strlen(wide), 5004);
    text_printf(&text, "%s", wide); /* longer than any buffer on the stack */
    assert_int_equal(text.size, 11004);
    text_add(&text, "\0x", 2);
    assert_int_equal(text.size, 11006);
    assert_memory_equal(text.data + 11004, "\0x", 3);
}

static void checked_sums(void **state) {
    (void)state;
    int64_t out = 5;
    assert_true(mul_fits(INT64_C(3037000499), INT64_C(3037000499), &out));
    assert_true(out == INT64_C(3037000499) * INT64_C(3037000499));
    assert_false(mul_fits(INT64_C(1) << 32, INT64_C(1) << 31, &out));
    assert_false(mul_fits(INT64_MIN, -1, &out));
    assert_true(mul_fits(INT64_MIN, 1, &out) && out == INT64_MIN);
    assert_true(add_fits(INT64_MAX - 1, 1, &out) && out == INT64_MAX);
    assert_false(add_fits(INT64_MAX, 1, &out));
    assert_false(add_fits(INT64_MIN, -1, &out));
}

/* ------------------------------------------------------------------ failures */

static void traps(void **state) {
    (void)state;
    FailureTrap outer, inner;
    if (failure_trap(&outer) == 0) {
        if (failure_trap(&inner) == 0) (fail)("first %d", 1);
        assert_int_equal(inner.status, EXIT_USER);
        assert_string_equal(inner.message, "first 1");
        if (failure_trap(&inner) == 0) failure_release(&inner);
        fail_status(EXIT_CANNOT, "second");
    }
    assert_int_equal(outer.status, EXIT_CANNOT);
    assert_string_equal(outer.message, "second");
    if (failure_trap(&outer) == 0) bug("third");
    assert_int_equal(outer.status, EXIT_BUG);
    if (failure_trap(&outer) == 0) (fail)("%3000d", 1); /* cut to the trap's room */
    assert_int_equal(strlen(outer.message), sizeof outer.message - 1);
}

/* ------------------------------------------------------------------ reports */

static Text reported;

static void keep_note(const char *format, va_list args) {
    text_printf(&reported, "note[");
    text_vprintf(&reported, format, args);
    text_printf(&reported, "]");
}

static void keep_diagnosis(const Diagnosis *d) {
    const char *word = d->text + d->place, *rest = d->text + d->word, *caret = d->text + d->caret;
    text_printf(&reported, "%s<%.*s><%.*s><%.*s><%.*s>", d->is_error ? "error" : "note", (int)d->place, d->text,
                (int)(d->word - d->place), word, (int)(d->caret - d->word), rest, (int)(d->size - d->caret), caret);
}

static void keep_progress(const Progress *p) {
    text_printf(&reported, "(%s %lld/%lld %s %lld/%lld)", p->what, (long long)p->done, (long long)p->total,
                p->unit ? p->unit : "-", (long long)p->step, (long long)p->steps);
}

static bool always(void) { return true; }
static void keep_hide(void) { text_printf(&reported, "hide"); }

static void now_reported(const char *text) {
    assert_string_equal(reported.data, text);
    reported = text_new(arena);
}

/* What a stage reports comes whole to the reporter, and to it alone. */
static void reports(void **state) {
    (void)state;
    static const Reporter keeper = {NULL, keep_note, keep_diagnosis, keep_progress, keep_progress, always, keep_hide};
    Source source = {.path = "s.attn", .text = "model m", .size = 7};
    reported = text_new(arena);
    report_to(&keeper);
    report_note("%d tensors", 3);
    now_reported("note[3 tensors]");
    Diagnostics loud = diagnostics_new(arena), quiet = diagnostics_quiet(arena);
    diagnose(&loud, (Location){&source, 1, 7, 1}, "what is \x1b%s?", "m");
    now_reported("error<s.attn:1:7: ><error:>< what is ?m?\n    model m\n><          ^\n>");
    diagnose_note(&loud, (Location){0}, "nowhere");
    now_reported("note<attnc: ><note:>< nowhere\n><>");
    diagnose(&quiet, (Location){0}, "unseen");
    now_reported("");
    assert_string_equal(quiet.log.data, "attnc: error: unseen\n");
    while (loud.errors < MAX_DIAGNOSTICS) diagnose(&loud, (Location){0}, "more");
    reported = text_new(arena);
    diagnose(&loud, (Location){0}, "too many");
    diagnose(&loud, (Location){0}, "far too many");
    now_reported("error<><><too many errors; the rest is not shown\n><>");
    assert_int_equal(loud.errors, MAX_DIAGNOSTICS + 2);

    assert_false(progress_is_wanted());
    progress_tick();
    now_reported("");
    progress_begin("packing %s", "m");
    progress_at(1, 4, "MB");
    progress_step(2, 3);
    progress_more(2);
    now_reported("(packing m 0/0 - 0/0)(packing m 1/4 MB 0/0)(packing m 1/4 MB 2/3)(packing m 3/4 MB 0/0)");
    assert_true(progress_is_wanted());
    progress_end();
    assert_false(progress_is_wanted());
    now_reported("hide");
    report_to(NULL);
    progress_begin("unseen");
    assert_false(progress_is_wanted());
    progress_end();
    now_reported("");
}

/* A program that installs no reporter has plain lines on stderr. */
static void plain_reports(void **state) {
    (void)state;
    const char *path = in_folder("plain");
    pid_t child = fork();
    if (child == 0) {
        if (!freopen(path, "w", stderr)) _exit(99);
        report_note("%d tensors", 3);
        Diagnostics loud = diagnostics_new(arena);
        diagnose(&loud, (Location){0}, "wrong");
        fail_system(ENOENT, "%s: cannot be opened", "x");
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_USER);
    holds(path, "attnc: note: 3 tensors\nattnc: error: wrong\n"
                "attnc: error: x: cannot be opened: No such file or directory\n");
}

/* ------------------------------------------------------------------ output files */

static void commits(void **state) {
    (void)state;
    const char *path = in_folder("committed");
    int before = files_in_folder();
    OutputFile *file = output_open(arena, path);
    output_write(file, "....text", 8);
    output_seek(file, 0);
    output_write(file, "some", 4);
    output_write(file, NULL, 0);
    assert_false(file_exists(path)); /* not before the commit */
    output_commit(file);
    holds(path, "sometext");
    assert_int_equal(files_in_folder(), before + 1);
    outputs_discard();
    holds(path, "sometext");
}

static void discards(void **state) {
    (void)state;
    const char *kept = in_folder("kept"), *new = in_folder("new");
    OutputFile *file = output_open(arena, kept);
    output_write(file, "old", 3);
    output_commit(file);
    int before = files_in_folder();
    if (failure_trap(&trap) == 0) {
        OutputFile *a = output_open(arena, kept), *b = output_open(arena, new);
        output_write(a, "half", 4);
        output_write(b, "half", 4);
        assert_int_equal(files_in_folder(), before + 2);
        (fail)("enough");
    }
    assert_int_equal(files_in_folder(), before);
    assert_false(file_exists(new));
    holds(kept, "old");
}

static void replaces(void **state) {
    (void)state;
    const char *path = in_folder("replaced");
    static const char *const texts_of[] = {"one", "a second text", ""};
    for (int i = 0; i < 3; i++) {
        OutputFile *file = output_open(arena, path), *other = output_open(arena, in_folder("other"));
        output_write(file, texts_of[i], strlen(texts_of[i]));
        output_commit(file); /* the one opened first: the list of open files holds the other still */
        outputs_discard();
        (void)other;
        holds(path, texts_of[i]);
        assert_false(file_exists(in_folder("other")));
    }
}

static void write_one(const char *path) {
    OutputFile *file = output_open(arena, path);
    output_write(file, "x", 1);
    output_commit(file);
}

static void bad_places(void **state) {
    (void)state;
    int before = files_in_folder();
    REFUSED(output_open(arena, in_folder("no/such/folder")), EXIT_USER, "No such file");
    mkdir(in_folder("sub"), 0777);
    REFUSED(write_one(in_folder("sub")), EXIT_USER, ""); /* a folder cannot be replaced by a file */
    assert_int_equal(files_in_folder(), before + 1);
    if (access("/dev/full", W_OK) == 0) {
        const char *part = arena_printf(arena, "%s.part-%ld", in_folder("full"), (long)getpid());
        assert_int_equal(symlink("/dev/full", part), 0);
        REFUSED(write_one(in_folder("full")), EXIT_USER, "No space left");
        assert_int_equal(files_in_folder(), before + 1);
    }
}

static void refuse_file(const char *path, const char *message) {
    size_t size;
    REFUSED(file_read(arena, path, 9, &size), EXIT_USER, message);
    REFUSED(file_map(arena, path), EXIT_USER, message);
}

static void reads(void **state) {
    (void)state;
    const char *path = in_folder("read");
    OutputFile *file = output_open(arena, path);
    output_write(file, "0123456789", 10);
    output_commit(file);
    MappedFile mapped = file_map(arena, path);
    assert_int_equal(mapped.size, 10);
    assert_memory_equal(mapped.data, "0123456789", 10);
    size_t size;
    assert_string_equal(file_read(arena, path, 10, &size), "0123456789");
    REFUSED(file_read(arena, path, 9, &size), EXIT_USER, "is too large: 10 bytes, at most 9");
    refuse_file(in_folder("missing"), "cannot be opened");
    refuse_file(folder, "it is a folder");
    refuse_file("/dev/null", "it is not a regular file");
}

/* ------------------------------------------------------------------ words and hashes */

static void words(void **state) {
    (void)state;
    static const char *const list[] = {"d_model", "heads", "head", "heads", "layernorm", "rmsnorm", "eps", "q", NULL};
    static const struct { const char *word, *nearest; } cases[] = {
        {"d_modle", "d_model"}, {"dmodel", "d_model"}, {"haeds", "heads"}, {"heads", "heads"}, {"hed", "head"},
            {"layer_norm", "layernorm"},
        {"Layernorm", "layernorm"}, {"esp", "eps"}, {"ep", "eps"}, {"zzzzzz", NULL}, {"", NULL}, {"x", NULL}, {"xy",
            NULL},
        {"rmsn", NULL}, {"rmsnor", "rmsnorm"}, {"normlayer", NULL},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *nearest = nearest_word(cases[i].word, list);
        if (!nearest != !cases[i].nearest || (nearest && strcmp(nearest, cases[i].nearest) != 0))
            fail_msg("`%s` is nearest to `%s`, not `%s`", cases[i].word, nearest ? nearest : "nothing",
                cases[i].nearest ? cases[i].nearest : "nothing");
    }
    static const char *const none[] = {NULL};
    assert_null(nearest_word("heads", none));
}

static void hashes(void **state) {
    (void)state;
    assert_true(hash_bytes(0, "", 0) == UINT64_C(0xcbf29ce484222325)); /* the published values of FNV-1a */
    assert_true(hash_bytes(0, "a", 1) == UINT64_C(0xaf63dc4c8601ec8c));
    assert_true(hash_bytes(0, "foobar", 6) == UINT64_C(0x85944171f73967e8));
    assert_true(hash_bytes(hash_bytes(0, "foo", 3), "bar", 3) == hash_bytes(0, "foobar", 6));
    double t = seconds_now();
    assert_true(seconds_now() >= t);
}

/* ------------------------------------------------------------------ out of memory, in the whole program */

static const char spec[] =
    "let w = 4\nmodel m {\n    d_model 2*w   # a comment\n    vocab 11, export attention heads 1\n"
    "    encoder { seq <= 8, position learned, layers 2 { attention self { heads 2 }, ffn { d_ff 16 } } }\n"
    "    weights { \"encoder.final_norm.*\" from \"n.*\", prefix \"a.\" }\n    head pool mean l2\n}\n";

/* Every allocation may be the one that fails: status 5, and neither crash nor another message. */
static void no_memory(void **state) {
    (void)state;
    const char *attnc = getenv("ATTNC") ? getenv("ATTNC") : "build/attnc";
    if (access(attnc, X_OK) != 0) skip();
    const char *path = in_folder("spec.attn");
    static const char *const commands[] = {"weights", "fmt", "--dump=ast,model"};
    OutputFile *file = output_open(arena, path);
    output_write(file, spec, sizeof spec - 1);
    output_commit(file);
    for (int c = 0; c < 3; c++) {
        int fine = 0, without = 0;
        for (int n = 1; n <= 100; n++) { /* more than there are */
            int status = system(arena_printf(arena, "ATTNC_FAIL_ALLOC=%d %s %s %s >/dev/null 2>%s/stderr", n, attnc,
                commands[c], path, folder));
            if (!WIFEXITED(status) || (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != EXIT_MEMORY))
                fail_msg("%s with allocation %d failing ended with status %d", commands[c], n, status);
            fine += WEXITSTATUS(status) == 0;
            without += WEXITSTATUS(status) == EXIT_MEMORY;
            holds(in_folder("stderr"), WEXITSTATUS(status) ? "attnc: error: out of memory\n" : "");
        }
        assert_true(fine > 0 && without > 1);
    }
}

/* Each number reads back as itself from the shortest text that does, in the form of a spec. */
static void numbers(void **state) {
    (void)state;
    static const struct {
        double value;
        const char *text;
    } rows[] = {{16, "16"}, {-3, "-3"}, {0, "0"}, {-0.0, "0"}, {1e-5, "1e-5"}, {1e-12, "1e-12"}, {0.1, "0.1"},
                {500000, "500000"}, {1e15, "1e15"}, {999999999999999, "999999999999999"}, {1.5e300, "1.5e300"},
                {1.0 / 3, "0.3333333333333333"}, {0.1 + 0.2, "0.30000000000000004"}, {5e-324, "5e-324"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_string_equal(number_text(arena, rows[i].value), rows[i].text);
        assert_true(strtod(rows[i].text, NULL) == rows[i].value);
    }
}

static void numbers_of_f32(void **state) {
    (void)state;
    static const double rows[] = {0.1, 0.9, -1.25, 0, 1e-6, 3e30, 16777216, 0.3333333};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) assert_true(f32_written((float)rows[i]) == rows[i]);
    assert_true((float)f32_written(0x1.fffffep-3f) == 0x1.fffffep-3f);
}

static void counts(void **state) {
    (void)state;
    assert_string_equal(counted(arena, 1, "layer"), "1 layer");
    assert_string_equal(counted(arena, 0, "layer"), "0 layers");
    assert_string_equal(counted(arena, 2, "query"), "2 queries");
    assert_string_equal(counted(arena, 1, "query"), "1 query");
    assert_string_equal(counted(arena, 3, "key"), "3 keys");
    assert_string_equal(counted(arena, INT64_MAX, "y"), "9223372036854775807 ys");
}

/* A text is cut before a character that does not fit; bytes that are no characters are cut anywhere. */
static void cuts(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t most, size;
    } cases[] = {{"", 0, 0}, {"abc", 3, 3}, {"abcd", 3, 3}, {"a\xc3\xa9", 2, 1}, {"a\xc3\xa9", 3, 3},
                 {"\xc3\xa9", 1, 0}, {"ab\xe2\x82\xac", 3, 2}, {"ab\xe2\x82\xac", 4, 2}, {"ab\xe2\x82\xac", 5, 5},
                 {"a\xf0\x9f\x98\x80z", 2, 1}, {"a\xf0\x9f\x98\x80z", 4, 1}, {"a\xf0\x9f\x98\x80z", 5, 5},
                 {"a\xe9zz", 2, 2}, {"\x80\x80\x80\x80\x80", 4, 4}, {"ab\xe2\x82", 3, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (utf8_cut(cases[i].text, cases[i].most) != cases[i].size)
            fail_msg("case %zu: %zu", i, utf8_cut(cases[i].text, cases[i].most));
    }
    char text[64];
    snprintf(text, sizeof text, "`%.*s`", CUT(3, "ab\xe2\x82\xac"));
    assert_string_equal(text, "`ab`");
    char odd[] = "a\nb\tc\x1b\xc2\x9b\xe2\x82\xac";
    text_disarm(odd, sizeof odd - 1);
    assert_string_equal(odd, "a\nb\tc???\xe2\x82\xac");
    text_disarm_line(odd, sizeof odd - 1);
    assert_string_equal(odd, "a?b?c???\xe2\x82\xac");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(alignment), TEST(big_blocks), TEST(cleanup_order), TEST(overflow), TEST(texts), TEST(checked_sums),
            TEST(traps), TEST(reports), TEST(plain_reports),
        TEST(commits), TEST(discards), TEST(replaces), TEST(bad_places), TEST(reads), TEST(words),
        TEST(numbers), TEST(numbers_of_f32),
        TEST(counts),  TEST(hashes), TEST(no_memory), TEST(cuts),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
