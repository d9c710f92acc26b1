#define _GNU_SOURCE
#include "CPeer.h"
#include "CPlatform.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

_Static_assert(WATCHWORD_OPEN_AS_PATH == O_PATH, "fcntl.h has another value");

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

int watchword_peer_process(int socket, int32_t pid) {
    int process = -1;
    socklen_t length = sizeof process;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &process, &length) == 0) {
        return watchword_set_close_on_exec(process) == 0 ? process : -1;
    }
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

int watchword_open_cached(int root, const char *path) {
    struct open_how how = {
        .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_CACHED | RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
    return (int)syscall(SYS_openat2, root, path, &how, sizeof how);
}

int watchword_is_running(int process) {
    struct pollfd entry = {.fd = process, .events = POLLIN};
    return poll(&entry, 1, 0) == 0;
}

int watchword_peer_label(int socket, char *label, size_t capacity) {
    socklen_t length = (socklen_t)capacity;
    return getsockopt(socket, SOL_SOCKET, SO_PEERSEC, label, &length) == 0 ? (int)length : -1;
}

int watchword_process_label(int folder, char *label, size_t capacity) {
    // The second file may be that of another security module.
    int file = openat(folder, "attr/apparmor/current", O_RDONLY | O_CLOEXEC);
    ssize_t count = file >= 0 ? read(file, label, capacity) : -1;
    if (file >= 0) close(file);
    if (count >= 0) return (int)count;
    file = openat(folder, "attr/current", O_RDONLY | O_CLOEXEC);
    if (file < 0) return -1;
    count = read(file, label, capacity);
    int error = errno;
    close(file);
    errno = error;
    return (int)count;
}

int watchword_ask_for_senders(int socket, int is_wanted) {
    return setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &is_wanted, sizeof is_wanted) == 0 ? 0 : errno;
}

int watchword_waiting_input(int socket) {
    int count = 0;
    return ioctl(socket, FIONREAD, &count) == 0 ? count : -1;
}
