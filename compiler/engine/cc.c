/* cc.c: finds the C compiler of this machine and runs it. */
#include "cc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CANNOT_RUN = 127 }; /* the exit status that shells use, too */

int run_program(const Folder *scratch, const char *const *argv) {
    fflush(NULL);
    sigset_t before;
    interruptions_block(&before);
    pid_t child = fork();
    if (child == 0) {
        interruptions_restore(&before);
        if (scratch) setenv("TMPDIR", folder_path(scratch), true);
        execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(CANNOT_RUN);
    }
    int error = errno;
    interruptions_child(child > 0 ? child : 0);
    interruptions_restore(&before);
    if (child < 0) fail_system(error, "%s: no process can be made for it", argv[0]);
    int status = 0;
    const struct timespec pause = {.tv_nsec = 5000000};
    for (pid_t ended = 0; ended != child;) {
        ended = child_wait(child, &status, progress_is_wanted() ? WNOHANG : 0);
        if (ended < 0) {
            error = errno;
            child_wait(child, NULL, 0); /* it may write to a folder that is removed next */
            fail_system(error, "%s: its end cannot be awaited", argv[0]);
        }
        if (ended == 0) nanosleep(&pause, NULL);
        progress_tick();
    }
    interruptions_child(0);
    if (WIFSIGNALED(status)) fail("%s: ended by signal %d: %s", argv[0], WTERMSIG(status), strsignal(WTERMSIG(status)));
    if (WEXITSTATUS(status) == CANNOT_RUN) fail("%s: cannot be run", argv[0]);
    return WEXITSTATUS(status);
}

static bool is_program(const char *path) { return strchr(path, '/') && access(path, X_OK) == 0; }

const char *const *cc_words(Arena *arena, const char *command, const char *const *arguments) {
    static const char blank[] = " \t\n";
    size_t room = strlen(command) + 2, n = 0;
    for (const char *const *word = arguments; *word; word++) room++;
    const char **words = arena_array(arena, room, sizeof *words);
    const bool whole = is_program(command);
    for (const char *at = command + (whole ? 0 : strspn(command, blank)); *at;) {
        const size_t size = whole ? strlen(at) : strcspn(at, blank);
        words[n++] = arena_copy(arena, at, size);
        at += size + strspn(at + size, blank);
    }
    while (*arguments) words[n++] = *arguments++;
    return words;
}

/* Relative paths become absolute ones, since make runs in another folder. Of the words, only the path of a program can
 * have blanks. */
const char *cc_for_make(Arena *arena, const char *command) {
    const char *const none[] = {NULL}, *const *words = cc_words(arena, command, none);
    Text out = text_new(arena);
    for (int i = 0; words[i]; i++) {
        char *whole = i == 0 && strchr(words[i], '/') ? realpath(words[i], NULL) : NULL;
        const char *word = whole ? arena_copy(arena, whole, strlen(whole)) : words[i];
        free(whole);
        const bool quoted = i == 0 && strpbrk(word, " \t'\"\\");
        if (strpbrk(word, "\n\r")) fail("the C compiler `%s` has the end of a line in its path", command);
        text_printf(&out, "%s%s", i ? " " : "", quoted ? "'" : "");
        for (const char *at = word; *at; at++) {
            if (quoted && *at == '\'') text_printf(&out, "'\\''");
            else if (*at == '$' || *at == '#') text_printf(&out, *at == '$' ? "$$" : "\\#");
            else text_add(&out, at, 1);
        }
        if (quoted) text_printf(&out, "'");
    }
    return out.data;
}

void cc_try(Arena *arena, const char *command, bool shared) {
    static const char text[] = "#include <math.h>\n#include <stdint.h>\n#include <string.h>\n"
                               "int main(void) { return 0; }\n";
    Folder *folder = folder_new(arena);
    const char *source = folder_file(folder, "probe.c"), *made = folder_file(folder, "probe");
    const char *const arguments[] = {"-std=c11", "-o", made, source, shared ? "-shared" : NULL, "-fPIC", NULL};
    write_text(arena, source, text);
    const int status = run_program(folder, cc_words(arena, command, arguments));
    if (status != 0)
        fail("the C compiler `%s` does not work: it compiles no empty program (status %d)", command, status);
}

bool cc_exists(Arena *arena, const char *command) {
    if (is_program(command)) return true;
    const char *const none[] = {NULL}, *program = cc_words(arena, command, none)[0];
    if (!program) return false;
    if (strchr(program, '/')) return access(program, X_OK) == 0;
    const char *path = getenv("PATH");
    for (const char *at = path ? path : ""; *at;) {
        size_t length = strcspn(at, ":");
        if (access(arena_printf(arena, "%.*s/%s", (int)length, at, program), X_OK) == 0) return true;
        at += length + (at[length] == ':');
    }
    return false;
}

const char *cc_find(Arena *arena, const char *named, bool or_interp) {
    const char *wanted = named ? named : getenv("CC");
    const char *instead = or_interp ? "; --engine interp needs none" : "";
    if (wanted && *wanted) {
        if (cc_exists(arena, wanted)) return wanted;
        if (strchr(wanted, '/') && errno != ENOENT && errno != ENOTDIR)
            fail_system(errno, "the C compiler `%s` cannot be run", wanted);
        fail("the C compiler `%s` is not there%s", wanted, instead);
    }
    static const char *const usual[] = {"clang", "gcc", "cc"};
    for (int i = 0; i < 3; i++)
        if (cc_exists(arena, usual[i])) return usual[i];
    fail("no C compiler: install clang or gcc, or name one with --cc%s", instead);
}
