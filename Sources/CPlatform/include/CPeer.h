#ifndef WATCHWORD_CPEER_H
#define WATCHWORD_CPEER_H

#include <stddef.h>
#include <stdint.h>

/// O_PATH (open(2)), which Swift does not import: the descriptor only refers to the file, which is neither read nor written.
enum { WATCHWORD_OPEN_AS_PATH = 010000000 };

/// Opens a file with O_PATH if the kernel has its path cached (RESOLVE_CACHED, Linux 5.12), so that the call does not wait for a
/// file system. `root` is the root directory of the path and of all symbolic links. Returns a descriptor, or -1.
int watchword_open_cached(int root, const char *path);

/// Returns a pidfd of the process that connected `socket` (SO_PEERPIDFD, Linux 6.5), or -1. On older kernels, opens the process
/// `pid` instead. The caller closes the descriptor.
int watchword_peer_process(int socket, int32_t pid);

/// Whether the process of this pidfd is running.
int watchword_is_running(int process);

/// Gets the security label of the process that connected `socket` (SO_PEERSEC). Returns its length, which may include a final
/// NUL, or -1.
int watchword_peer_label(int socket, char *label, size_t capacity);

/// Gets the security label of a process: that of AppArmor, or of another module. Returns its length, or -1 with errno set.
/// - folder: the directory `/proc/PID`.
int watchword_process_label(int folder, char *label, size_t capacity);

/// Sets SO_PASSCRED (unix(7)) on `socket`: the kernel then supplies the sender's credentials with received data, and never
/// returns data of two senders at once. Accepted sockets inherit the option. Returns 0 or errno.
int watchword_ask_for_senders(int socket, int is_wanted);

/// Returns the number of bytes that `socket` has received and that were not read yet, or -1.
int watchword_waiting_input(int socket);

#endif
