#ifndef WATCHWORD_CLOOP_H
#define WATCHWORD_CLOOP_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

// Wrappers of epoll(7), eventfd(2), timerfd_create(2) and signalfd(2), whose structures Swift does not import.

enum { WATCHWORD_READABLE = 1, WATCHWORD_WRITABLE = 2, WATCHWORD_HUNG_UP = 4 };

/// The events of a watched descriptor.
struct watchword_readiness {
    int descriptor;
    /// The value passed to `watchword_poll_watch`.
    uint32_t generation;
    uint32_t events;
};

/// Creates an epoll(7) instance with close-on-exec. Returns the descriptor, or -1 with errno set.
int watchword_poll_descriptor(void);

/// Watches `descriptor` for `events`, level-triggered, in place of previous events. Returns 0, or errno.
/// - is_watched: whether the caller has watched `descriptor` before. Only a hint: closing a descriptor also ends its watch.
int watchword_poll_watch(int poll, int descriptor, uint32_t events, uint32_t generation, int is_watched);

/// Stops watching `descriptor`. Does nothing if it is already closed.
void watchword_poll_forget(int poll, int descriptor);

/// Waits for events. Returns the number of elements of `ready` that were filled, at most 64; 0 after a timeout of
/// `milliseconds` (-1 for none) and after a signal.
int watchword_poll_wait(int poll, struct watchword_readiness *ready, int capacity, int milliseconds);

/// Creates a non-blocking eventfd(2) with close-on-exec. Returns the descriptor, or -1 with errno set.
int watchword_event_descriptor(void);

/// Creates a non-blocking timerfd on CLOCK_BOOTTIME with close-on-exec. Returns the descriptor, or -1 with errno set.
int watchword_timer_descriptor(void);

/// Makes the timer expire once, `nanoseconds` from now.
void watchword_timer_set(int timer, int64_t nanoseconds);

/// Creates a signalfd(2) that becomes readable when one of `signals` is pending; they must be blocked. To read a signal, see
/// `watchword_read_interrupt`. Returns the descriptor, or -1 with errno set.
int watchword_signal_descriptor(const int *signals, size_t count);

/// Accepts a connection with a non-blocking, close-on-exec descriptor. Returns the descriptor, or -1 with errno set.
int watchword_accept(int listening);

/// Reads at most `capacity` bytes, all from one sender: see `watchword_ask_for_senders`. Returns the result of recvmsg(2).
/// - sender: receives the sender's process id; 0 if the kernel does not supply it.
long watchword_receive(int socket, void *bytes, size_t capacity, int32_t *sender);

/// Joins `thread`, or detaches it if it has not ended after `seconds`. Returns 0 if the thread has ended.
int watchword_join_within(pthread_t thread, int seconds);

#endif
