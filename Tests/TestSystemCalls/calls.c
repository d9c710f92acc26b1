#define _GNU_SOURCE
#include "TestSystemCalls.h"

#include <errno.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CALL(name) {#name, SYS_##name}

static const struct {
    const char *name;
    long number;
} calls[] = {
    CALL(execve), CALL(execveat), CALL(ptrace), CALL(process_vm_readv), CALL(process_vm_writev), CALL(pidfd_getfd),
    CALL(init_module), CALL(finit_module), CALL(kexec_load), CALL(bpf), CALL(perf_event_open), CALL(userfaultfd),
    CALL(io_uring_setup), CALL(mount), CALL(umount2), CALL(pivot_root), CALL(chroot), CALL(unshare), CALL(setns),
    CALL(open_by_handle_at), CALL(swapon),
};

enum { CALLS = sizeof calls / sizeof *calls };

const char *watchword_test_call_name(int index) { return index < CALLS ? calls[index].name : NULL; }

int watchword_test_call_error(int index) {
    return syscall(calls[index].number, 0L, 0L, 0L, 0L, 0L, 0L) == -1 ? errno : 0;
}
