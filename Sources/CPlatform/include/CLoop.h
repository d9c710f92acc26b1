#ifndef WATCHWORD_CLOOP_H
#define WATCHWORD_CLOOP_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

// epoll(7), eventfd(2), timerfd_create(2) and signalfd(2), whose structures Swift does not see.

enum { WATCHWORD_READABLE = 1, WATCHWORD_WRITABLE = 2, WATCHWORD_HUNG_UP = 4 };

/// What has happened to a watched descriptor.
struct watchword_readiness {
    int descriptor;
    /// As given to `watchword_poll_watch`.
    uint32_t generation;
    uint32_t events;
};

/// A new epoll(7) instance, closed on exec. Returns the descriptor, or -1 with errno set.
int watchword_poll_descriptor(void);

/// Waits for `events` on `descriptor` from now on, level-triggered, in place of what was waited for. Returns 0, or errno.
/// - is_watched: whether it is already waited for, as far as the caller knows. Whoever closed it has ended that, too.
int watchword_poll_watch(int poll, int descriptor, uint32_t events, uint32_t generation, int is_watched);

/// Waits for nothing on `descriptor` any more; one that is closed already is none to wait for.
void watchword_poll_forget(int poll, int descriptor);

/// Returns how many of `ready` were filled; 0 after `milliseconds`, and after a signal.
int watchword_poll_wait(int poll, struct watchword_readiness *ready, int capacity, int milliseconds);

/// A new eventfd(2), closed on exec, on which no call waits. Returns the descriptor, or -1 with errno set.
int watchword_event_descriptor(void);

/// A new timerfd on CLOCK_BOOTTIME, closed on exec. Returns the descriptor, or -1 with errno set.
int watchword_timer_descriptor(void);

/// Makes the timer ring once, `nanoseconds` from now.
void watchword_timer_set(int timer, int64_t nanoseconds);

/// A descriptor that becomes readable when one of these signals, which must be blocked, comes, for
/// `watchword_read_interrupt`. Returns -1 with errno set.
int watchword_signal_descriptor(const int *signals, size_t count);

/// Accepts a connection: close-on-exec, and no call on it waits. Returns the descriptor, or -1 with errno set.
int watchword_accept(int listening);

/// Reads at most `capacity` bytes, all from one sender: see `watchword_ask_for_senders`. Returns what recvmsg returns.
/// - sender: the process; 0 when the kernel does not say.
long watchword_receive(int socket, void *bytes, size_t capacity, int32_t *sender);

/// Joins `thread`, or detaches it if it has not ended after `seconds`. Returns 0 when it is gone.
int watchword_join_within(pthread_t thread, int seconds);

#endif
