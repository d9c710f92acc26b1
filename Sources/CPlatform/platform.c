#define _GNU_SOURCE
#include "CPlatform.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <wchar.h>

_Static_assert(WATCHWORD_SPAWN_NEW_SESSION == POSIX_SPAWN_SETSID, "spawn.h has another value");

void watchword_wipe(void *block, size_t length) { explicit_bzero(block, length); }

int watchword_peer_credentials(int socket, int32_t *pid, uint32_t *uid) {
    struct ucred peer = {.pid = 0, .uid = (uid_t)-1, .gid = (gid_t)-1};
    socklen_t length = sizeof peer;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return errno;
    if (length != sizeof peer) return EINVAL;
    *pid = peer.pid;
    *uid = peer.uid;
    return 0;
}

// All of these registers are caller-saved, so clearing them is safe. memcpy leaves parts of the copied data in them, and the
// dynamic linker's lazy resolver (in libraries that are not bound at start) writes them to the stack later.
static void clear_vector_registers(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f")) {
        __asm__ volatile(
            "vpxord %zmm16, %zmm16, %zmm16\n vpxord %zmm17, %zmm17, %zmm17\n vpxord %zmm18, %zmm18, %zmm18\n"
            "vpxord %zmm19, %zmm19, %zmm19\n vpxord %zmm20, %zmm20, %zmm20\n vpxord %zmm21, %zmm21, %zmm21\n"
            "vpxord %zmm22, %zmm22, %zmm22\n vpxord %zmm23, %zmm23, %zmm23\n vpxord %zmm24, %zmm24, %zmm24\n"
            "vpxord %zmm25, %zmm25, %zmm25\n vpxord %zmm26, %zmm26, %zmm26\n vpxord %zmm27, %zmm27, %zmm27\n"
            "vpxord %zmm28, %zmm28, %zmm28\n vpxord %zmm29, %zmm29, %zmm29\n vpxord %zmm30, %zmm30, %zmm30\n"
            "vpxord %zmm31, %zmm31, %zmm31\n");
    }
    if (__builtin_cpu_supports("avx")) {
        __asm__ volatile(
            "vzeroall" ::: "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11",
            "xmm12", "xmm13", "xmm14", "xmm15");
    }
#elif defined(__aarch64__)
    __asm__ volatile(
        "movi v0.2d, #0\n movi v1.2d, #0\n movi v2.2d, #0\n movi v3.2d, #0\n movi v4.2d, #0\n movi v5.2d, #0\n"
        "movi v6.2d, #0\n movi v7.2d, #0\n movi v16.2d, #0\n movi v17.2d, #0\n movi v18.2d, #0\n movi v19.2d, #0\n" ::
            : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v16", "v17", "v18", "v19");
#endif
}

__attribute__((noinline)) void watchword_clear_stack(void) {
    char area[WATCHWORD_CLEARED_STACK];
    watchword_wipe(area, sizeof area);  // guard: memory-stack
    clear_vector_registers();
}

int watchword_set_close_on_exec(int descriptor) {
    int flags = fcntl(descriptor, F_GETFD);
    if (flags < 0 || fcntl(descriptor, F_SETFD, flags | FD_CLOEXEC) < 0) return errno;
    return 0;
}

static int socket_option(int descriptor, int name) {
    int value = -1;
    socklen_t length = sizeof value;
    return getsockopt(descriptor, SOL_SOCKET, name, &value, &length) == 0 ? value : -1;
}

int watchword_is_listening_unix_socket(int descriptor) {
    return socket_option(descriptor, SO_DOMAIN) == AF_UNIX && socket_option(descriptor, SO_TYPE) == SOCK_STREAM &&
           socket_option(descriptor, SO_ACCEPTCONN) == 1;
}

int watchword_harden_process(void) {
    const struct rlimit none = {0, 0};
    if (setrlimit(RLIMIT_CORE, &none) != 0) return errno;  // guard: no-core
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return errno;  // guard: not-dumpable
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;  // guard: no-new-privileges
    watchword_keep_crashes_silent();
    return 0;
}

void watchword_keep_crashes_silent(void) {
    static const int crashes[] = {SIGQUIT, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP};
    for (size_t index = 0; index < sizeof crashes / sizeof *crashes; index++) signal(crashes[index], SIG_DFL);
}

int watchword_lowest_free_descriptor(int from) {
    int descriptor = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, from);
    if (descriptor >= 0) close(descriptor);
    return descriptor;
}

int watchword_close_from(unsigned first) { return close_range(first, ~0U, 0) == 0 ? 0 : errno; }

void watchword_raise_locked_memory_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_MEMLOCK, &limit);
}

int watchword_interrupt_descriptor(void) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    sigaddset(&signals, SIGQUIT);
    if (sigprocmask(SIG_BLOCK, &signals, NULL) != 0) return -1;
    return signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

int watchword_read_interrupt(int descriptor) {
    struct signalfd_siginfo info;
    return read(descriptor, &info, sizeof info) == sizeof info ? (int)info.ssi_signo : 0;
}

int watchword_terminal_width(uint32_t character) {
    static const char *locale;
    if (locale == NULL) locale = setlocale(LC_CTYPE, "C.UTF-8");
    int width = wcwidth((wchar_t)character);
    return width < 0 ? 1 : width;
}
