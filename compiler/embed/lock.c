/* lock.c: one process for an output. The lock of flock ends with the process, however that ends, and a file of its own
 * has it, since the other files are renamed. */
#include "embed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static char *held; /* the path */

static void remove_held(void) { unlink(held); }

static void hold(const char *path) {
    const size_t size = strlen(path) + 1;
    held = checked_malloc(size);
    if (!held) out_of_memory();
    memcpy(held, path, size);
    if (atexit(remove_held)) out_of_memory();
}

bool lock_take(const char *path) {
    if (held) bug("%s: another lock is held", path);
    for (;;) {
        const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);
        if (fd < 0) fail_system(errno, "%s: cannot be written", path);
        if (flock(fd, LOCK_EX | LOCK_NB)) {
            const int error = errno;
            close(fd);
            if (error == EINTR) continue;
            if (error == EWOULDBLOCK) return false;
            fail_system(error, "%s: cannot be locked", path);
        }
        /* the process that held it may have removed the file between open and flock, and then the lock says nothing */
        struct stat mine, there;
        if (fstat(fd, &mine) == 0 && stat(path, &there) == 0 && mine.st_dev == there.st_dev &&
            mine.st_ino == there.st_ino)
            return hold(path), true;
        close(fd);
    }
}
