/* calls REPORT HOW NAME NUMBER PROGRAM ARGUMENT…: runs a program and does something to one of its system calls, the
 * NUMBER-th of those called NAME. (Not the NUMBER-th of all: mkdtemp asks for random numbers until it likes them, and
 * how often threads make malloc ask for memory depends on who comes first.)
 *
 * Calls are counted from 1, behind the one that makes the program ignore SIGXFSZ, which is attnc's first: what the
 * dynamic loader does before main is not counted. Calls of other threads and of children are left alone.
 *
 *   list          writes every counted call: NUMBER NAME PATH
 *   fail:ERRNO    the call is not made and says ERRNO; a close is made all the same
 *   short         the call, a read or a write, is asked for one byte
 *   before:SIG    the signal SIG arrives in front of the call
 *   after:SIG     the signal SIG arrives behind the call
 *
 * REPORT then holds `hit NAME PATH`, if the call came, `descriptors N` open above 2 when the program ended by itself,
 * and `status N` or `signal N`. */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <dirent.h>
#include <unistd.h>

#if !defined(__x86_64__) || !defined(__linux__)
#error "calls.c knows the registers of Linux on x86-64 alone"
#endif

/* Where a call names a file: in a descriptor or in a path, which of its arguments. */
typedef enum Names { NOTHING, DESCRIPTOR, PATH, PATH_AT } Names;

typedef struct Call {
    unsigned long long number;
    const char *name;
    Names names;
} Call;

static const Call calls[] = {
    {SYS_read, "read", DESCRIPTOR},         {SYS_pread64, "pread64", DESCRIPTOR},
    {SYS_readv, "readv", DESCRIPTOR},       {SYS_write, "write", DESCRIPTOR},
    {SYS_writev, "writev", DESCRIPTOR},     {SYS_pwrite64, "pwrite64", DESCRIPTOR},
    {SYS_open, "open", PATH},               {SYS_openat, "openat", PATH_AT},
    {SYS_close, "close", DESCRIPTOR},       {SYS_lseek, "lseek", DESCRIPTOR},
    {SYS_fsync, "fsync", DESCRIPTOR},       {SYS_fdatasync, "fdatasync", DESCRIPTOR},
    {SYS_ftruncate, "ftruncate", DESCRIPTOR}, {SYS_fstat, "fstat", DESCRIPTOR},
    {SYS_stat, "stat", PATH},               {SYS_lstat, "lstat", PATH},
    {SYS_newfstatat, "newfstatat", PATH_AT}, {SYS_access, "access", PATH},
    {SYS_faccessat, "faccessat", PATH_AT},  {SYS_rename, "rename", PATH},
    {SYS_renameat, "renameat", PATH_AT},    {SYS_unlink, "unlink", PATH},
    {SYS_unlinkat, "unlinkat", PATH_AT},    {SYS_rmdir, "rmdir", PATH},
    {SYS_mkdir, "mkdir", PATH},             {SYS_mkdirat, "mkdirat", PATH_AT},
    {SYS_mmap, "mmap", NOTHING},            {SYS_munmap, "munmap", NOTHING},
    {SYS_mprotect, "mprotect", NOTHING},    {SYS_mremap, "mremap", NOTHING},
    {SYS_madvise, "madvise", NOTHING},      {SYS_brk, "brk", NOTHING},
    {SYS_clone, "clone", NOTHING},          {SYS_clone3, "clone3", NOTHING},
    {SYS_fork, "fork", NOTHING},            {SYS_vfork, "vfork", NOTHING},
    {SYS_wait4, "wait4", NOTHING},          {SYS_getrandom, "getrandom", NOTHING},
    {SYS_sched_getaffinity, "sched_getaffinity", NOTHING},
};

typedef struct Tracer {
    pid_t child;
    FILE *report;
    const char *how;
    int number; /* an errno or a signal */
    const char *name; /* of the call, and its number among those of this name */
    long at, count[sizeof calls / sizeof *calls];
    int begun, inside; /* the first call was seen; the next stop is behind a call */
    int hit;           /* this is the call */
    int is_brk;        /* which fails in its own way: its answer is the break that was */
    unsigned long long first; /* argument of the call */
} Tracer;

static void give_up(const char *what) {
    fprintf(stderr, "calls: %s: %s\n", what, strerror(errno));
    exit(99);
}

static const Call *find(unsigned long long number) {
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (calls[i].number == number) return &calls[i];
    return NULL;
}

/* The file that a call speaks of, or "-". */
static void name_file(pid_t child, const Call *call, const struct user_regs_struct *r, char *out, size_t room) {
    snprintf(out, room, "-");
    if (call->names == NOTHING) return;
    if (call->names == DESCRIPTOR) {
        char link[64];
        snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)child, (int)r->rdi);
        ssize_t size = readlink(link, out, room - 1);
        if (size >= 0) out[size] = '\0';
        return;
    }
    struct iovec here = {out, room - 1}, there = {(void *)(call->names == PATH ? r->rdi : r->rsi), room - 1};
    ssize_t size = process_vm_readv(child, &here, 1, &there, 1, 0);
    if (size < 0) { /* the path ends near the end of the memory */
        there.iov_len = here.iov_len = 4096 - ((size_t)there.iov_base & 4095);
        if (here.iov_len > room - 1) here.iov_len = there.iov_len = room - 1;
        size = process_vm_readv(child, &here, 1, &there, 1, 0);
    }
    out[size < 0 ? 0 : size] = '\0';
    if (!out[0]) snprintf(out, room, "-");
}

static void set(pid_t child, size_t offset, unsigned long long value) {
    if (ptrace(PTRACE_POKEUSER, child, (void *)offset, (void *)value)) give_up("POKEUSER");
}

static void count_descriptors(const Tracer *t) {
    char folder[64];
    snprintf(folder, sizeof folder, "/proc/%d/fd", (int)t->child);
    DIR *list = opendir(folder);
    int open = 0;
    for (struct dirent *entry; list && (entry = readdir(list));)
        open += entry->d_name[0] != '.' && atoi(entry->d_name) > 2;
    if (list) closedir(list);
    fprintf(t->report, "descriptors %d\n", open);
}

static void in_front(Tracer *t) {
    struct user_regs_struct r;
    if (ptrace(PTRACE_GETREGS, t->child, NULL, &r)) give_up("GETREGS");
    t->hit = 0;
    if (!t->begun) {
        t->begun = r.orig_rax == SYS_rt_sigaction && r.rdi == SIGXFSZ;
        return;
    }
    if (r.orig_rax == SYS_exit_group) count_descriptors(t);
    const Call *call = find(r.orig_rax);
    if (!call) return;
    long number = ++t->count[call - calls];
    char path[512];
    name_file(t->child, call, &r, path, sizeof path);
    if (strcmp(t->how, "list") == 0) fprintf(t->report, "%ld %s %s\n", number, call->name, path);
    if (number != t->at || strcmp(call->name, t->name) != 0) return;
    t->hit = 1;
    fprintf(t->report, "hit %s %s\n", call->name, path);
    fflush(t->report);
    if (strcmp(t->how, "before") == 0) kill(t->child, t->number);
    int fails = strcmp(t->how, "fail") == 0;
    t->is_brk = fails && r.orig_rax == SYS_brk;
    t->first = r.rdi;
    if (t->is_brk) set(t->child, offsetof(struct user_regs_struct, rdi), 0); /* then it says what there is */
    else if (fails && r.orig_rax != SYS_close) /* which closes in any case */
        set(t->child, offsetof(struct user_regs_struct, orig_rax), (unsigned long long)-1);
    int moves = call->names == DESCRIPTOR && (strstr(call->name, "read") || strstr(call->name, "write"));
    if (strcmp(t->how, "short") == 0 && moves && r.rdx > 1) set(t->child, offsetof(struct user_regs_struct, rdx), 1);
}

static void behind(Tracer *t) {
    if (!t->hit) return;
    t->hit = 0;
    if (t->is_brk) set(t->child, offsetof(struct user_regs_struct, rdi), t->first);
    else if (strcmp(t->how, "fail") == 0)
        set(t->child, offsetof(struct user_regs_struct, rax), (unsigned long long)-t->number);
    if (strcmp(t->how, "after") == 0) kill(t->child, t->number);
}

static void trace(Tracer *t) {
    int deliver = 0, status;
    for (;;) {
        if (ptrace(PTRACE_SYSCALL, t->child, NULL, (void *)(long)deliver) && errno != ESRCH) give_up("SYSCALL");
        if (waitpid(t->child, &status, 0) < 0) give_up("waitpid");
        deliver = 0;
        if (WIFEXITED(status)) fprintf(t->report, "status %d\n", WEXITSTATUS(status));
        if (WIFSIGNALED(status)) fprintf(t->report, "signal %d\n", WTERMSIG(status));
        if (!WIFSTOPPED(status)) return;
        if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
            if (t->inside) behind(t);
            else in_front(t);
            t->inside = !t->inside;
        } else if (WSTOPSIG(status) != SIGTRAP) {
            deliver = WSTOPSIG(status);
        }
    }
}

int main(int argc, char **argv) {
    if (argc < 6) return fprintf(stderr, "usage: calls REPORT HOW NAME NUMBER PROGRAM ARGUMENT…\n"), 99;
    Tracer t = {.report = fopen(argv[1], "w"), .how = argv[2], .name = argv[3], .at = strtol(argv[4], NULL, 10)};
    if (!t.report) give_up(argv[1]);
    char *colon = strchr(argv[2], ':');
    if (colon) {
        *colon = '\0';
        t.number = atoi(colon + 1);
    }
    t.child = fork();
    if (t.child < 0) give_up("fork");
    if (t.child == 0) {
        fclose(t.report);
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL)) give_up("TRACEME");
        raise(SIGSTOP);
        execv(argv[5], argv + 5);
        give_up(argv[5]);
    }
    int status;
    if (waitpid(t.child, &status, 0) < 0 || !WIFSTOPPED(status)) give_up("the program does not begin");
    if (ptrace(PTRACE_SETOPTIONS, t.child, NULL, (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL)))
        give_up("SETOPTIONS");
    trace(&t);
    if (fclose(t.report)) give_up(argv[1]);
    return 0;
}
