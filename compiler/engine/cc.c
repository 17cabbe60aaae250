/* cc.c: finds the C compiler of this machine and runs it. */
#include "cc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CANNOT_RUN = 127 }; /* the exit status that shells use, too */

int run_program(const char *const *argv) {
    fflush(NULL);
    sigset_t before;
    interruptions_block(&before);
    pid_t child = fork();
    if (child == 0) {
        interruptions_restore(&before);
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
        ended = waitpid(child, &status, progress_is_wanted() ? WNOHANG : 0);
        if (ended < 0 && errno != EINTR) fail_system(errno, "%s: its end cannot be awaited", argv[0]);
        if (ended == 0) nanosleep(&pause, NULL);
        progress_tick();
    }
    interruptions_child(0);
    if (WIFSIGNALED(status)) fail("%s: ended by signal %d: %s", argv[0], WTERMSIG(status), strsignal(WTERMSIG(status)));
    if (WEXITSTATUS(status) == CANNOT_RUN) fail("%s: cannot be run", argv[0]);
    return WEXITSTATUS(status);
}

bool cc_exists(Arena *arena, const char *program) {
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
        if (strchr(wanted, '/') && errno != ENOENT) fail_system(errno, "the C compiler `%s` cannot be run", wanted);
        fail("the C compiler `%s` is not there%s", wanted, instead);
    }
    static const char *const usual[] = {"clang", "gcc", "cc"};
    for (int i = 0; i < 3; i++)
        if (cc_exists(arena, usual[i])) return usual[i];
    fail("no C compiler: install clang or gcc, or name one with --cc%s", instead);
}
