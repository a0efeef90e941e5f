/* Stands between a process and libc: counts its I/O calls, and at the n-th kills the process, tears the write or fails.
 *
 * Told by the environment, which is read at the first call after SHIM_CLASSES is set (a process forked from a warm one
 * sets it when it becomes a start):
 *   SHIM_CLASSES  letters of the classes that count: w writes, s syncs, n names, c conversation, d descriptors
 *   SHIM_SKIP     colon-separated pieces of paths that do not count (files of the test itself)
 *   SHIM_AT       the call, from 1; SHIM_DO  before | after | torn (die there) or an errno, once; `errno+`: from there on
 *   SHIM_RECORD   a file: note each call as `name\tresult\tinode\toffset\tlength\tpath\tpath2\n`, then the bytes and \n
 * Calls through the dynamic linker only: CPython, sqlite3, OpenSSL; not what libc calls inside itself.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define ALARM_S 120 /* a start that is not over by then hangs */
#define REAL(name) ((__typeof__(&name))real(#name))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *classes, *skip, *what;
static long at, counted;
static int record = -1, armed;

static void *real(const char *name) { return dlsym(RTLD_NEXT, name); }

static void arm(void) {
    const char *number = getenv("SHIM_AT"), *file = getenv("SHIM_RECORD");
    classes = strdup(getenv("SHIM_CLASSES"));
    skip = getenv("SHIM_SKIP") ? strdup(getenv("SHIM_SKIP")) : "";
    what = getenv("SHIM_DO") ? strdup(getenv("SHIM_DO")) : "before";
    at = number ? atol(number) : 0;
    if (file && *file) record = syscall(SYS_openat, AT_FDCWD, file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    alarm(ALARM_S);
    armed = 1;
}

/* Talk with another program, not the socket pair by which a process wakes itself. */
static int is_internet(int fd) {
    struct sockaddr_storage name;
    socklen_t size = sizeof name;
    return !getsockname(fd, (struct sockaddr *)&name, &size) && name.ss_family != AF_UNIX;
}

static int counts(char class, const char *path) {
    if (!armed && !getenv("SHIM_CLASSES")) return 0;
    if (!armed) arm();
    if (!strchr(classes, class)) return 0;
    for (const char *piece = skip; *piece;) {
        size_t length = strcspn(piece, ":");
        char name[256];
        if (length && length < sizeof name) {
            memcpy(name, piece, length);
            name[length] = 0;
            if (strstr(path, name)) return 0;
        }
        piece += length + (piece[length] == ':');
    }
    return 1;
}

static void die(void) {
    syscall(SYS_kill, getpid(), SIGKILL);
    for (;;) pause();
}

/* What is done with one call: 0 make it, 1 make it and die, 2 make half of it and die, 3 fail with errno. */
enum { MAKE, THEN_DIE, HALF, FAIL };

static int verdict(void) {
    long number = __sync_add_and_fetch(&counted, 1);
    int wanted = atoi(what), onward = wanted && strchr(what, '+');
    if (!at || number < at || (number > at && !onward)) return MAKE;
    if (wanted) { errno = wanted; return FAIL; }
    if (!strcmp(what, "before")) die();
    return strcmp(what, "torn") ? THEN_DIE : HALF;
}

static const char *path_of(int fd, char *buffer, size_t size) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, buffer, size - 1);
    buffer[length < 0 ? 0 : length] = 0;
    return buffer;
}

static void note(const char *name, long result, int fd, long offset, const void *data, size_t length, const char *path,
                 const char *path2) {
    if (record < 0) return;
    struct stat found = {0};
    if (fd >= 0) fstat(fd, &found);
    char head[9000];
    int size = snprintf(head, sizeof head, "%s\t%ld\t%lu\t%ld\t%zu\t%s\t%s\n", name, result, (unsigned long)found.st_ino,
                        offset, length, path, path2 ? path2 : "");
    struct iovec parts[3] = {{head, size}, {(void *)data, length}, {"\n", 1}};
    syscall(SYS_writev, record, parts, 3);
}

/* One call on a descriptor. `half` is the same call on half of its bytes, the whole call where that means nothing. */
#define ON_FD(class, name, fd, data, length, offset, call, half)                                                     \
    char place[4096];                                                                                                  \
    if (!counts(class, path_of(fd, place, sizeof place)) || (class == 'c' && !is_internet(fd))) return call;           \
    if (class != 'c') pthread_mutex_lock(&lock);                                                                      \
    int then = verdict();                                                                                              \
    long result = then == FAIL ? -1 : then == HALF ? (long)(half) : (long)(call);                                      \
    int kept = errno;                                                                                                  \
    if (then == THEN_DIE || then == HALF) die();                                                                       \
    if (then != FAIL) note(name, result, fd, offset, data, length, place, "");                                         \
    if (class != 'c') pthread_mutex_unlock(&lock);                                                                    \
    errno = kept;                                                                                                      \
    return result

#define ON_PATH(name, path, path2, call)                                                                               \
    if (!counts('n', path)) return call;                                                                               \
    pthread_mutex_lock(&lock);                                                                                         \
    int then = verdict();                                                                                              \
    long result = then == FAIL ? -1 : (long)(call);                                                                    \
    int kept = errno;                                                                                                  \
    if (then == THEN_DIE || then == HALF) die();                                                                       \
    if (then != FAIL) note(name, result, -1, 0, "", 0, path, path2);                                                   \
    pthread_mutex_unlock(&lock);                                                                                       \
    errno = kept;                                                                                                      \
    return result

#define HERE(fd) (lseek(fd, 0, SEEK_CUR) - (result > 0 ? result : 0))
#define MADE (result > 0 ? (size_t)result : 0)

ssize_t write(int fd, const void *data, size_t size) {
    ON_FD('w', "write", fd, data, MADE, HERE(fd), REAL(write)(fd, data, size), REAL(write)(fd, data, size / 2));
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t from) {
    ON_FD('w', "pwrite", fd, data, MADE, from, REAL(pwrite)(fd, data, size, from),
          REAL(pwrite)(fd, data, size / 2, from));
}
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t from) {
    ON_FD('w', "pwrite", fd, data, MADE, from, REAL(pwrite64)(fd, data, size, from),
          REAL(pwrite64)(fd, data, size / 2, from));
}
int ftruncate(int fd, off_t size) {
    ON_FD('w', "ftruncate", fd, "", 0, size, REAL(ftruncate)(fd, size), REAL(ftruncate)(fd, size));
}
int ftruncate64(int fd, off64_t size) {
    ON_FD('w', "ftruncate", fd, "", 0, size, REAL(ftruncate64)(fd, size), REAL(ftruncate64)(fd, size));
}
int fsync(int fd) { ON_FD('s', "fsync", fd, "", 0, 0, REAL(fsync)(fd), REAL(fsync)(fd)); }
int fdatasync(int fd) { ON_FD('s', "fsync", fd, "", 0, 0, REAL(fdatasync)(fd), REAL(fdatasync)(fd)); }

int rename(const char *from, const char *to) { ON_PATH("rename", from, to, REAL(rename)(from, to)); }
int renameat(int a, const char *from, int b, const char *to) {
    ON_PATH("rename", from, to, REAL(renameat)(a, from, b, to));
}
int link(const char *from, const char *to) { ON_PATH("link", from, to, REAL(link)(from, to)); }
int linkat(int a, const char *from, int b, const char *to, int flags) {
    ON_PATH("link", from, to, REAL(linkat)(a, from, b, to, flags));
}
int unlink(const char *path) { ON_PATH("unlink", path, "", REAL(unlink)(path)); }
int unlinkat(int a, const char *path, int flags) { ON_PATH("unlink", path, "", REAL(unlinkat)(a, path, flags)); }
int mkdir(const char *path, mode_t mode) { ON_PATH("mkdir", path, "", REAL(mkdir)(path, mode)); }

ssize_t send(int fd, const void *data, size_t size, int flags) {
    ON_FD('c', "send", fd, data, MADE, 0, REAL(send)(fd, data, size, flags), REAL(send)(fd, data, size / 2, flags));
}
ssize_t sendto(int fd, const void *data, size_t size, int flags, const struct sockaddr *to, socklen_t length) {
    ON_FD('c', "send", fd, data, MADE, 0, REAL(sendto)(fd, data, size, flags, to, length),
          REAL(sendto)(fd, data, size / 2, flags, to, length));
}
ssize_t recv(int fd, void *data, size_t size, int flags) {
    ON_FD('c', "recv", fd, "", 0, 0, REAL(recv)(fd, data, size, flags), REAL(recv)(fd, data, size, flags));
}
ssize_t recvfrom(int fd, void *data, size_t size, int flags, struct sockaddr *from, socklen_t *length) {
    ON_FD('c', "recv", fd, "", 0, 0, REAL(recvfrom)(fd, data, size, flags, from, length),
          REAL(recvfrom)(fd, data, size, flags, from, length));
}

/* Opening is a name (it may create or cut a file) and takes a descriptor; it counts as the latter. */
static int opened(const char *path, int flags, int (*call)(const char *, int, ...), mode_t mode) {
    if (!counts('d', path)) return call(path, flags, mode);
    pthread_mutex_lock(&lock);
    int then = verdict();
    struct stat before;
    int created = (flags & O_CREAT) && stat(path, &before);
    int fd = then == FAIL ? -1 : call(path, flags, mode);
    int kept = errno;
    if (then == THEN_DIE || then == HALF) die();
    if (fd >= 0 && (flags & O_ACCMODE) != O_RDONLY) {
        char place[4096];
        note(created ? "create" : flags & O_TRUNC ? "cut" : "open", fd, fd, 0, "", 0, path_of(fd, place, sizeof place), "");
    }
    pthread_mutex_unlock(&lock);
    errno = kept;
    return fd;
}

#define MODE(flags)                                                                                                    \
    va_list rest;                                                                                                      \
    va_start(rest, flags);                                                                                             \
    mode_t mode = (flags) & (O_CREAT | __O_TMPFILE) ? va_arg(rest, mode_t) : 0;                                        \
    va_end(rest)

int open(const char *path, int flags, ...) {
    MODE(flags);
    return opened(path, flags, (int (*)(const char *, int, ...))real("open"), mode);
}
int open64(const char *path, int flags, ...) {
    MODE(flags);
    return opened(path, flags, (int (*)(const char *, int, ...))real("open64"), mode);
}
int socket(int domain, int type, int protocol) {
    if (!counts('d', "socket:")) return REAL(socket)(domain, type, protocol);
    return verdict() == FAIL ? -1 : REAL(socket)(domain, type, protocol);
}
