#ifndef WATCHWORD_CPLATFORM_H
#define WATCHWORD_CPLATFORM_H

#include <stddef.h>
#include <stdint.h>

#include "CFront.h"
#include "CLoop.h"
#include "CPeer.h"

/// Overwrites `length` bytes at `block` in a way that the compiler may not remove.
void watchword_wipe(void *block, size_t length);

/// The part of the stack that `watchword_clear_stack` overwrites, in bytes: more than libcurl, OpenSSL and the broker's calls
/// use.
enum { WATCHWORD_CLEARED_STACK = 64 << 10 };

/// Overwrites the unused part of the calling thread's stack, where earlier calls may have left parts of a secret in spilled
/// registers and local buffers. Clears the vector registers as well. Call this where the stack is shallow.
void watchword_clear_stack(void);

/// Gets the process and the user at the other end of a connected Unix socket (SO_PEERCRED, unix(7)). Returns 0 or errno.
int watchword_peer_credentials(int socket, int32_t *pid, uint32_t *uid);

/// The broker for a program that `watchword_run_and_wait` runs, and the proxy of this broker that the program uses.
struct watchword_broker {
    /// The connection to the broker.
    int connection;
    /// The TCP port of the proxy.
    uint16_t port;
    /// Lines for the standard error output: when the broker has ended, and when another program has the port then.
    const char *has_ended, *has_been_replaced;
};

/// Runs a program, found in PATH, with an environment of its own, and waits for its end. Passes on the signals that other
/// processes send to this one meanwhile (TERM, HUP, INT, QUIT, USR1, USR2). Its descendants whose parents end become children of this
/// process. Must be called on the only thread. Returns 0 or errno.
/// When the broker ends, this process takes the port of its proxy, so that no other program receives the requests; they fail then. If
/// it cannot, it kills the program and its descendants.
/// - status: receives the wait status (waitpid(2)).
int watchword_run_and_wait(
    char *const arguments[], char *const environment[], const struct watchword_broker *broker, int *status);

/// Ends this process as the other one has ended: with the same exit code, or by the same signal.
void watchword_end_like(int status) __attribute__((noreturn));

/// Starts a program in a process group of its own, with this process's environment, no blocked signals, no input and no error
/// output. The program inherits no descriptor but `output`. Returns 0 or errno.
/// - arguments: the name of the program and its arguments, ended by NULL.
/// - pid: receives the process ID. The caller waits for the process.
/// - output: receives the reading end of a pipe(7) for the standard output. The caller closes it.
int watchword_start_command(const char *path, char *const arguments[], int32_t *pid, int *output);

/// Starts a program like `watchword_start_command`, but without arguments, and with no environment but the time zone.
/// - zone: the value of TZ; may be NULL.
/// - socket: receives one end of a connected pair of stream sockets; the other is the program's standard input and output. The
///   caller closes it.
int watchword_start_evaluator(const char *path, const char *zone, int32_t *pid, int *socket);

/// Sets close-on-exec. Returns 0 or errno.
int watchword_set_close_on_exec(int descriptor);

/// Whether `descriptor` is a listening Unix stream socket.
int watchword_is_listening_unix_socket(int descriptor);

/// Protects the memory of the process from other processes of its user: not dumpable (so no ptrace, no /proc/PID/mem), no core
/// files, no new privileges, no crash report. Returns 0 or errno.
int watchword_harden_process(void);

/// Restores the default action of the signals of a crash, because the handlers of Swift's runtime print registers and memory.
void watchword_keep_crashes_silent(void);

/// Raises the soft limit for locked memory (mlock(2)) to the hard limit.
void watchword_raise_locked_memory_limit(void);

/// Blocks SIGINT, SIGQUIT, SIGTERM and SIGHUP in this thread, and returns a descriptor that becomes readable when one of them
/// is pending (signalfd(2)), or -1.
int watchword_interrupt_descriptor(void);

/// Reads a pending signal from the descriptor. Returns its number, or 0.
int watchword_read_interrupt(int descriptor);

/// Returns the lowest free descriptor that is not below `from`; -1 if there is none.
int watchword_lowest_free_descriptor(int from);

/// Denies system calls that a broker never uses, for all threads of this process and their children (seccomp(2)): to execute
/// programs, to inspect or trace other processes, to load code into the kernel, to mount and the like. Such a call fails with
/// EPERM; a call through another architecture's ABI kills the process. Returns 0 or errno.
int watchword_filter_system_calls(void);

/// POSIX_SPAWN_SETSID, which Swift does not import: the new process starts a new session.
enum { WATCHWORD_SPAWN_NEW_SESSION = 0x80 };

/// Closes every descriptor from `first` on. Returns 0 or errno.
int watchword_close_from(unsigned first);

/// Returns the number of columns of a character on a terminal, from the C library's tables for C.UTF-8, whatever the user's
/// locale. For single-threaded programs.
int watchword_terminal_width(uint32_t character);

#endif
