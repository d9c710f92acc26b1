#ifndef WATCHWORD_CPEER_H
#define WATCHWORD_CPEER_H

#include <stddef.h>
#include <stdint.h>

/// O_PATH (open(2)), which Swift does not see: the file is only meant, and neither read nor written.
enum { WATCHWORD_OPEN_AS_PATH = 010000000 };

/// A descriptor of the process that has connected `socket` (SO_PEERPIDFD, Linux 6.5; before that of process `pid`), or -1.
/// The caller closes it.
int watchword_peer_process(int socket, int32_t pid);

/// Whether the process of this descriptor has not ended.
int watchword_is_running(int process);

/// The security label of the process that has connected `socket` (SO_PEERSEC). Returns its length, which may count a NUL at the
/// end, or -1.
int watchword_peer_label(int socket, char *label, size_t capacity);

/// Whether the kernel notes with all that is sent to `socket`, or to what it accepts, who sends it, and never reads bytes of two
/// senders at once (SO_PASSCRED, unix(7)). Returns 0 or errno.
int watchword_ask_for_senders(int socket, int is_wanted);

#endif
