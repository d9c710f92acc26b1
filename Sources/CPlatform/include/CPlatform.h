#ifndef WATCHWORD_CPLATFORM_H
#define WATCHWORD_CPLATFORM_H

#include <stddef.h>
#include <stdint.h>

#include "CLoop.h"
#include "CPeer.h"

/// Overwrites `length` bytes at `block` in a way that the compiler may not remove.
void watchword_wipe(void *block, size_t length);

/// How much of the stack `watchword_clear_stack` overwrites, in bytes: deeper than libcurl, OpenSSL and the broker's own calls go.
enum { WATCHWORD_CLEARED_STACK = 64 << 10 };

/// Overwrites the part of the calling thread's stack that functions have used which have returned since: spilled registers and
/// local buffers may hold parts of a secret. Clears the vector registers as well. To be called where the stack is shallow.
void watchword_clear_stack(void);

/// Who is at the other end of a connected Unix socket (SO_PEERCRED, unix(7)). Returns 0, or an error number.
int watchword_peer_credentials(int socket, int32_t *pid, uint32_t *uid);

/// Returns 0, or an error number.
int watchword_set_close_on_exec(int descriptor);

/// Whether `descriptor` is a listening Unix stream socket.
int watchword_is_listening_unix_socket(int descriptor);

/// Makes the process unreadable for others of its user: not dumpable (so no ptrace, no /proc/PID/mem, no core), no core
/// file, no new privileges, no account of a crash. Returns 0, or an error number.
int watchword_harden_process(void);

/// Lets the process end by a crash as by any signal: Swift's runtime would write down what is in registers and behind them.
void watchword_keep_crashes_silent(void);

/// Lets the process lock as much memory (mlock(2)) as its user may: the soft limit becomes the hard one.
void watchword_raise_locked_memory_limit(void);

/// Blocks SIGINT, SIGQUIT, SIGTERM and SIGHUP in this thread, and returns a descriptor that becomes readable when one of them
/// comes (signalfd(2)), or -1.
int watchword_interrupt_descriptor(void);

/// The signal that has come, or 0.
int watchword_read_interrupt(int descriptor);

/// The lowest descriptor from `from` on that is free; -1 where there is none.
int watchword_lowest_free_descriptor(int from);

/// Forbids this process, with all its threads and all that they start, what a broker never does (seccomp(2)): to run programs, to
/// look into other processes or trace them, to load code into the kernel, to mount and the like. Such a call fails with EPERM; one
/// by way of another architecture's calls ends the process. Returns 0, or an error number.
int watchword_filter_system_calls(void);

/// POSIX_SPAWN_SETSID, which Swift does not see: the new process starts a session of its own.
enum { WATCHWORD_SPAWN_NEW_SESSION = 0x80 };

/// Closes every descriptor from `first` on. Returns 0, or an error number.
int watchword_close_from(unsigned first);

/// How many places a character takes on a terminal, by the tables of the C library for UTF-8, whatever the user's language.
/// For a program with one thread.
int watchword_terminal_width(uint32_t character);

#endif
