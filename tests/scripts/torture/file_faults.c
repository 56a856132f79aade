/* A library to be preloaded, by which one call of a program on its files goes wrong. Calls are counted that name a file in
 * the current folder by a relative path, or use a descriptor of one.
 *
 *   FAULT_TRACE=FILE         append a word for each call: open, read, write, fsync, rename, ...
 *   FAULT_AT=N FAULT_DO=HOW  the N-th call, counted from 1: an error, ENOSPC, EIO, EINTR or ENOMEM, in its place; "short",
 *                            half of the bytes; "kill", SIGKILL before it, of a write in its midst; "killed", behind it
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MOST_FILES = 1024, TRACE = 1000 };

static char is_ours[MOST_FILES];
static long calls;

static int ours(int file) { return file >= 0 && file < MOST_FILES && is_ours[file]; }

static int in_folder(const char *path) { return path != NULL && path[0] != '/' && path[0] != '\0'; }

static int note(int file, int counted) {
  if (file >= 0 && file < MOST_FILES) is_ours[file] = (char)counted;
  return file;
}

static void trace(const char *kind) {
  const char *path = getenv("FAULT_TRACE");
  if (path == NULL) return;
  const int file = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  syscall(SYS_write, file, kind, strlen(kind));
  syscall(SYS_write, file, "\n", (size_t)1);
  syscall(SYS_close, file);
}

/* Counts a call. Returns what is to be done to it, or "". */
static const char *turn(const char *kind) {
  const char *at = getenv("FAULT_AT"), *how = getenv("FAULT_DO");
  trace(kind);
  const long now = __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST);
  return at != NULL && how != NULL && now == atol(at) ? how : "";
}

static int is(const char *how, const char *word) { return strcmp(how, word) == 0; }

static void die(void) { kill(getpid(), SIGKILL); }

/* Whether the call fails, errno then being set; or the process ends. */
static int fails(const char *how) {
  if (is(how, "kill")) die();
  errno = is(how, "ENOSPC")   ? ENOSPC
          : is(how, "EIO")    ? EIO
          : is(how, "EINTR")  ? EINTR
          : is(how, "ENOMEM") ? ENOMEM
                              : 0;
  return errno != 0;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

#define OPEN(name)                                                   \
  int name(const char *path, int flags, ...) {                       \
    va_list more;                                                    \
    va_start(more, flags);                                           \
    const mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;  \
    va_end(more);                                                    \
    if (!in_folder(path)) return note(REAL(name)(path, flags, mode), 0); \
    if (fails(turn("open"))) return -1;                              \
    return note(REAL(name)(path, flags, mode), 1);                   \
  }
OPEN(open)
OPEN(open64)

#define FOPEN(name)                                          \
  FILE *name(const char *path, const char *mode) {           \
    if (!in_folder(path)) return REAL(name)(path, mode);     \
    if (fails(turn("open"))) return NULL;                    \
    FILE *file = REAL(name)(path, mode);                     \
    if (file != NULL) note(fileno(file), 1);                 \
    return file;                                             \
  }
FOPEN(fopen)
FOPEN(fopen64)

static size_t half(const char *how, size_t size) { return is(how, "short") && size > 1 ? size / 2 : size; }

ssize_t read(int file, void *data, size_t size) {
  if (!ours(file)) return REAL(read)(file, data, size);
  const char *how = turn("read");
  return fails(how) ? -1 : REAL(read)(file, data, half(how, size));
}

#define PREAD(name, offset_type)                                          \
  ssize_t name(int file, void *data, size_t size, offset_type offset) {   \
    if (!ours(file)) return REAL(name)(file, data, size, offset);         \
    const char *how = turn("read");                                       \
    return fails(how) ? -1 : REAL(name)(file, data, half(how, size), offset); \
  }
PREAD(pread, off_t)
PREAD(pread64, off64_t)

ssize_t write(int file, const void *data, size_t size) {
  if (!ours(file)) return REAL(write)(file, data, size);
  const char *how = turn("write");
  if (is(how, "kill")) REAL(write)(file, data, size / 2);
  return fails(how) ? -1 : REAL(write)(file, data, half(how, size));
}

ssize_t writev(int file, const struct iovec *pieces, int count) {
  if (!ours(file)) return REAL(writev)(file, pieces, count);
  const char *how = turn("write");
  return fails(how) ? -1 : REAL(writev)(file, pieces, is(how, "short") && count > 1 ? 1 : count);
}

int rename(const char *from, const char *to) {
  if (!in_folder(from)) return REAL(rename)(from, to);
  const char *how = turn("rename");
  if (fails(how)) return -1;
  const int result = REAL(rename)(from, to);
  if (is(how, "killed")) die();
  return result;
}

/* Calls whose first argument is a descriptor, and a path. */
#define OF_FILE(name, kind, parameters, arguments)            \
  int name parameters {                                       \
    if (!ours(file)) return REAL(name) arguments;             \
    return fails(turn(kind)) ? -1 : REAL(name) arguments;     \
  }
OF_FILE(fsync, "fsync", (int file), (file))
OF_FILE(ftruncate, "ftruncate", (int file, off_t size), (file, size))
OF_FILE(ftruncate64, "ftruncate", (int file, off64_t size), (file, size))
OF_FILE(fchmod, "fchmod", (int file, mode_t mode), (file, mode))
OF_FILE(flock, "flock", (int file, int operation), (file, operation))

int unlink(const char *path) {
  if (!in_folder(path)) return REAL(unlink)(path);
  return fails(turn("unlink")) ? -1 : REAL(unlink)(path);
}

int close(int file) {
  if (!ours(file)) return REAL(close)(file);
  note(file, 0);
  const int failed = fails(turn("close"));
  const int reason = errno, result = REAL(close)(file); /* as Linux does: closed in any case */
  if (failed) errno = reason;
  return failed ? -1 : result;
}

#define MMAP(name, offset_type)                                                                     \
  void *name(void *address, size_t size, int protection, int flags, int file, offset_type offset) { \
    if (!ours(file)) return REAL(name)(address, size, protection, flags, file, offset);             \
    if (fails(turn("mmap"))) return MAP_FAILED;                                                     \
    return REAL(name)(address, size, protection, flags, file, offset);                              \
  }
MMAP(mmap, off_t)
MMAP(mmap64, off64_t)
