#include "sandbox.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/// The address space, in bytes: the script's memory, and that of libraries and threads.
static const rlim_t address_space = 256u << 20;

static void limit(__rlimit_resource_t resource, rlim_t value) {
    const struct rlimit both = {.rlim_cur = value, .rlim_max = value};
    if (setrlimit(resource, &both) != 0) _exit(1);
}

void sandbox_limit(void) {
    // Threads of the resolver would reserve an address space of their own.
    mallopt(M_ARENA_MAX, 1);
    limit(RLIMIT_AS, address_space);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_FSIZE, 0);
    limit(RLIMIT_NOFILE, 64);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) _exit(1);
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) _exit(1);
}

#if defined(__x86_64__)
#define OWN_ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OWN_ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

#ifdef OWN_ARCHITECTURE

static const unsigned allowed[] = {
    SYS_read, SYS_write, SYS_ppoll, SYS_restart_syscall, SYS_brk, SYS_munmap, SYS_mremap, SYS_madvise, SYS_futex,
    SYS_clock_gettime, SYS_gettimeofday, SYS_setitimer, SYS_exit, SYS_exit_group,
#ifdef SYS_poll
    SYS_poll, SYS_time,
#endif
};

enum { ALLOWED = sizeof allowed / sizeof *allowed };

void sandbox_close(void) {
    struct sock_filter program[ALLOWED + 12];
    unsigned short length = 0;
    program[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    program[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OWN_ARCHITECTURE, 1, 0);
    program[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    program[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    // Memory is not executable.
    program[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 1, 0);
    program[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 4);
    program[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2]));
    program[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1);
    program[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    program[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    for (unsigned char index = 0; index < ALLOWED; index++)
        program[length++] = (struct sock_filter)BPF_JUMP(
            BPF_JMP | BPF_JEQ | BPF_K, allowed[index], (unsigned char)(ALLOWED - index), 0);
    program[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    program[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const struct sock_fprog filter = {.len = length, .filter = program};
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) != 0) _exit(1);  // guard: pac-sandbox
}

#else

void sandbox_close(void) {}

#endif
