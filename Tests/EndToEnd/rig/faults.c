// Makes calls of a process fail, and moves its clocks, as specified in a file that it shares with the test (WATCHWORD_TEST_FAULTS).
// Loaded with LD_PRELOAD; see faults.py. Calls inside glibc are not intercepted.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum kind { NONE, ACCEPT, READ, WRITE, READ_FILE, WRITE_FILE, GETSOCKOPT, MMAP, MLOCK, OPEN, SOCKET, MEMORY, LIBRARY_MEMORY };

// In the order of `Faults.FIELDS`.
static struct control {
    // Set by the test: the offset of each clock in nanoseconds; the kind of calls, which of them fail (every nth, or only the nth), and
    // with which error; 0 means that the call does not return.
    _Atomic int64_t wall, awake, kind, nth, every, error;
    // Read by the test.
    _Atomic int64_t seen, failed, wall_timers;
    // Set by the test: the offset of the clocks of Swift's runtime in nanoseconds, as if that time had passed.
    _Atomic int64_t passed;
    // Set by the test: the same for libcurl.
    _Atomic int64_t aged;
    // Read by the test: the address in the program itself that asked for the memory it did not get; 0 if a library asked.
    _Atomic int64_t caller;
} *control;

// The address ranges of Swift's runtime, which ends the process, or reads from address 0, if it gets no memory; and of libcurl.
static struct ranges {
    struct { uintptr_t start, end; } all[32];
    int count;
} runtime, libcurl, program;

static uintptr_t base;

static int note(struct dl_phdr_info *object, size_t size, void *unused) {
    (void)size, (void)unused;
    struct ranges *ranges = strstr(object->dlpi_name, "/libcurl") ? &libcurl : object->dlpi_name[0] ? &runtime : &program;
    if (ranges == &program) base = object->dlpi_addr;
    if (ranges == &runtime && !strstr(object->dlpi_name, "/libswift") && !strstr(object->dlpi_name, "/libdispatch")) return 0;
    for (int index = 0; index < object->dlpi_phnum && ranges->count < 32; index++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[index];
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X)) continue;
        ranges->all[ranges->count].start = object->dlpi_addr + part->p_vaddr;
        ranges->all[ranges->count].end = ranges->all[ranges->count].start + part->p_memsz;
        ranges->count++;
    }
    return 0;
}

static int is_in(const struct ranges *ranges, uintptr_t caller) {
    for (int index = 0; index < ranges->count; index++)
        if (caller >= ranges->all[index].start && caller < ranges->all[index].end) return 1;
    return 0;
}

__attribute__((constructor)) static void start(void) {
    dl_iterate_phdr(note, NULL);
    const char *path = getenv("WATCHWORD_TEST_FAULTS");
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (shared != MAP_FAILED) control = shared;
}

static int fails(enum kind kind) {
    if (!control || control->kind != kind) return 0;
    int64_t nth = control->nth, number = ++control->seen;
    if (nth <= 0 || (control->every ? number % nth != 0 : number != nth)) return 0;
    control->failed++;
    // Like a disk that does not respond.
    while (control->error == 0) pause();
    errno = (int)control->error;
    return 1;
}

// Resolved on the first call, which is before `start`.
#define REAL(name) static __typeof__(&name) real; if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

// Errors of sockets are only for sockets, and EIO and ENOSPC only for files: not for eventfd(2), epoll(7) and the like.
static int fails_on(int descriptor, enum kind socket, enum kind file) {
    if (!control || (control->kind != socket && control->kind != file)) return 0;
    struct stat facts;
    if (fstat(descriptor, &facts) != 0) return 0;
    if (S_ISSOCK(facts.st_mode)) return fails(socket);
    return S_ISREG(facts.st_mode) ? fails(file) : 0;
}

#define WRAP(result, failed, kind, name, parameters, arguments) \
    result name parameters { REAL(name); if (fails(kind)) return failed; return real arguments; }
#define WRAP_READ(name, parameters, arguments) \
    ssize_t name parameters { REAL(name); if (fails_on(fd, READ, READ_FILE)) return -1; return real arguments; }
#define WRAP_WRITE(name, parameters, arguments) \
    ssize_t name parameters { REAL(name); if (fails_on(fd, WRITE, WRITE_FILE)) return -1; return real arguments; }

WRAP(int, -1, ACCEPT, accept, (int fd, struct sockaddr *from, socklen_t *size), (fd, from, size))
WRAP(int, -1, ACCEPT, accept4, (int fd, struct sockaddr *from, socklen_t *size, int flags), (fd, from, size, flags))
WRAP(int, -1, SOCKET, socket, (int domain, int type, int protocol), (domain, type, protocol))
WRAP(int, -1, GETSOCKOPT, getsockopt, (int fd, int level, int name, void *value, socklen_t *size), (fd, level, name, value, size))
WRAP_READ(read, (int fd, void *bytes, size_t count), (fd, bytes, count))
WRAP_READ(readv, (int fd, const struct iovec *parts, int count), (fd, parts, count))
WRAP_READ(pread, (int fd, void *bytes, size_t count, off_t at), (fd, bytes, count, at))
WRAP_READ(recv, (int fd, void *bytes, size_t count, int flags), (fd, bytes, count, flags))
WRAP_READ(recvmsg, (int fd, struct msghdr *message, int flags), (fd, message, flags))
WRAP_WRITE(write, (int fd, const void *bytes, size_t count), (fd, bytes, count))
WRAP_WRITE(writev, (int fd, const struct iovec *parts, int count), (fd, parts, count))
WRAP_WRITE(pwrite, (int fd, const void *bytes, size_t count, off_t at), (fd, bytes, count, at))
WRAP_WRITE(send, (int fd, const void *bytes, size_t count, int flags), (fd, bytes, count, flags))
WRAP_WRITE(sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags))
WRAP(int, -1, OPEN, mkstemp, (char *path), (path))
WRAP(int, -1, MLOCK, mlock, (const void *start, size_t size), (start, size))
WRAP(void *, MAP_FAILED, MMAP, mmap, (void *start, size_t size, int protection, int flags, int fd, off_t offset),
     (start, size, protection, flags, fd, offset))

#define WRAP_OPEN(name, before, arguments) \
    int name(before const char *path, int flags, ...) { \
        REAL(name); \
        va_list rest; \
        va_start(rest, flags); \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
        va_end(rest); \
        if (fails(OPEN)) return -1; \
        return real arguments; \
    }
#define FOLDER int folder,
WRAP_OPEN(open, , (path, flags, mode))
WRAP_OPEN(open64, , (path, flags, mode))
WRAP_OPEN(openat, FOLDER, (folder, path, flags, mode))
WRAP_OPEN(openat64, FOLDER, (folder, path, flags, mode))

// Memory. malloc, calloc, realloc and free are the daemon's own, which call __libc_malloc and __libc_calloc.
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);

// Returns who has called the functions of the daemon; they have frames, because it is a debug build.
static void *asker(void **frame) {
    uintptr_t own[] = {(uintptr_t)malloc, (uintptr_t)calloc, (uintptr_t)realloc};
    for (int index = 0; index < 3; index++)
        if ((uintptr_t)frame[1] - own[index] < 256) return asker(frame[0]);
    return frame[1];
}

static int fails_for(void *caller) {
    if (!control || control->kind != LIBRARY_MEMORY) return fails(MEMORY);
    if (is_in(&runtime, (uintptr_t)caller) || !fails(LIBRARY_MEMORY)) return 0;
    control->caller = is_in(&program, (uintptr_t)caller) ? (uintptr_t)caller - base : 0;
    return 1;
}

#define WRAP_MEMORY(result, failed, name, parameters, arguments) \
    result name parameters { \
        REAL(name); \
        if (fails_for(asker(__builtin_frame_address(0)))) return failed; \
        return real arguments; \
    }

WRAP_MEMORY(void *, NULL, malloc, (size_t size), (size))
WRAP_MEMORY(void *, NULL, __libc_malloc, (size_t size), (size))
WRAP_MEMORY(void *, NULL, calloc, (size_t count, size_t size), (count, size))
WRAP_MEMORY(void *, NULL, __libc_calloc, (size_t count, size_t size), (count, size))
WRAP_MEMORY(void *, NULL, aligned_alloc, (size_t alignment, size_t size), (alignment, size))
WRAP_MEMORY(int, ENOMEM, posix_memalign, (void **block, size_t alignment, size_t size), (block, alignment, size))

// Clocks.
static void add(struct timespec *time, int64_t nanoseconds) {
    nanoseconds += time->tv_nsec;
    time->tv_sec += nanoseconds / 1000000000;
    time->tv_nsec = nanoseconds % 1000000000;
    if (time->tv_nsec < 0) {
        time->tv_nsec += 1000000000;
        time->tv_sec--;
    }
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    REAL(clock_gettime);
    int result = real(clock, now);
    if (result != 0 || !control) return result;
    // CLOCK_MONOTONIC is moved only for Swift's runtime, because the timers of the kernel do not move with it.
    if (clock == CLOCK_BOOTTIME || (clock == CLOCK_MONOTONIC && is_in(&runtime, (uintptr_t)__builtin_return_address(0))))
        add(now, control->passed);
    if ((clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_RAW) && is_in(&libcurl, (uintptr_t)__builtin_return_address(0)))
        add(now, control->aged);
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) add(now, control->wall);
    if (clock == CLOCK_BOOTTIME) add(now, control->awake);
    return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    struct timespec precise;
    int result = clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return result;
}

time_t time(time_t *copy) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (copy) *copy = now.tv_sec;
    return now.tv_sec;
}

// The descriptors that are timers whose clock includes suspended time.
static _Atomic char counts_sleep[1024];

int timerfd_create(int clock, int flags) {
    REAL(timerfd_create);
    if (control && clock == CLOCK_REALTIME) control->wall_timers++;
    int timer = real(clock, flags);
    if (timer >= 0 && timer < 1024) counts_sleep[timer] = clock == CLOCK_BOOTTIME;
    return timer;
}

// The clock of the kernel is not moved, so its timers are adjusted here.
int timerfd_settime(int timer, int flags, const struct itimerspec *value, struct itimerspec *old) {
    REAL(timerfd_settime);
    struct itimerspec moved = *value;
    int is_set = moved.it_value.tv_sec != 0 || moved.it_value.tv_nsec != 0;
    if (control && (flags & TFD_TIMER_ABSTIME) && timer >= 0 && timer < 1024 && counts_sleep[timer] && is_set) {
        add(&moved.it_value, -control->awake - control->passed);
        if (moved.it_value.tv_sec < 0) moved.it_value = (struct timespec){.tv_nsec = 1};
    }
    return real(timer, flags, &moved, old);
}

// Waits until a wall-clock time, which may be moved meanwhile.
int sem_timedwait(sem_t *semaphore, const struct timespec *end) {
    for (;;) {
        if (sem_trywait(semaphore) == 0) return 0;
        struct timespec now, pause = {.tv_nsec = 2000000};
        clock_gettime(CLOCK_REALTIME, &now);
        if (now.tv_sec > end->tv_sec || (now.tv_sec == end->tv_sec && now.tv_nsec >= end->tv_nsec)) {
            errno = ETIMEDOUT;
            return -1;
        }
        nanosleep(&pause, NULL);
    }
}
