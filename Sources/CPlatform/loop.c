#define _GNU_SOURCE
#include "CLoop.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

int watchword_poll_descriptor(void) { return epoll_create1(EPOLL_CLOEXEC); }

int watchword_poll_watch(int poll, int descriptor, uint32_t events, uint32_t generation, int is_watched) {
    struct epoll_event event = {
        .events = (events & WATCHWORD_READABLE ? EPOLLIN : 0) | (events & WATCHWORD_WRITABLE ? EPOLLOUT : 0),
        .data.u64 = (uint64_t)generation << 32 | (uint32_t)descriptor};
    if (epoll_ctl(poll, is_watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, descriptor, &event) == 0) return 0;
    if (errno != ENOENT && errno != EEXIST) return errno;
    return epoll_ctl(poll, errno == EEXIST ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, descriptor, &event) == 0 ? 0 : errno;
}

void watchword_poll_forget(int poll, int descriptor) { epoll_ctl(poll, EPOLL_CTL_DEL, descriptor, NULL); }

int watchword_poll_wait(int poll, struct watchword_readiness *ready, int capacity, int milliseconds) {
    struct epoll_event events[64];
    int most = capacity < 64 ? capacity : 64;
    int count = epoll_wait(poll, events, most, milliseconds);
    for (int i = 0; i < count; i++) {
        uint32_t seen = events[i].events;
        ready[i].descriptor = (int)(uint32_t)events[i].data.u64;
        ready[i].generation = (uint32_t)(events[i].data.u64 >> 32);
        ready[i].events = (seen & (EPOLLIN | EPOLLPRI) ? WATCHWORD_READABLE : 0) |
                          (seen & EPOLLOUT ? WATCHWORD_WRITABLE : 0) |
                          (seen & (EPOLLHUP | EPOLLERR) ? WATCHWORD_HUNG_UP : 0);
    }
    return count < 0 ? 0 : count;
}

int watchword_event_descriptor(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

int watchword_timer_descriptor(void) { return timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK); }

void watchword_timer_set(int timer, int64_t nanoseconds) {
    // A time of zero would disarm the timer.
    int64_t from_now = nanoseconds > 0 ? nanoseconds : 1;
    struct itimerspec time = {
        .it_value = {.tv_sec = from_now / 1000000000, .tv_nsec = from_now % 1000000000}};
    timerfd_settime(timer, 0, &time, NULL);
}

int watchword_signal_descriptor(const int *signals, size_t count) {
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < count; i++) sigaddset(&set, signals[i]);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int watchword_accept(int listening) { return accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK); }

long watchword_receive(int socket, void *bytes, size_t capacity, int32_t *sender) {
    struct iovec piece = {.iov_base = bytes, .iov_len = capacity};
    // The buffer has no space for descriptors, so the kernel discards any that the sender passes.
    union {
        char bytes[CMSG_SPACE(sizeof(struct ucred))];
        struct cmsghdr alignment;
    } control;
    struct msghdr message = {
        .msg_iov = &piece, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    *sender = 0;
    long count;
    do {
        count = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    } while (count < 0 && errno == EINTR);
    struct cmsghdr *part = count > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (part != NULL && part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_CREDENTIALS &&
        part->cmsg_len == CMSG_LEN(sizeof(struct ucred))) {
        struct ucred credentials;
        memcpy(&credentials, CMSG_DATA(part), sizeof credentials);
        *sender = credentials.pid;
    }
    return count;
}

int watchword_join_within(pthread_t thread, int seconds) {
    struct timespec limit;
#if __has_feature(thread_sanitizer)
    // The sanitizer does not know pthread_clockjoin_np, and fails when the id of a joined thread is used again.
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += seconds;
    int status = pthread_timedjoin_np(thread, NULL, &limit);
#else
    clock_gettime(CLOCK_MONOTONIC, &limit);
    limit.tv_sec += seconds;
    int status = pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &limit);
#endif
    if (status != 0) pthread_detach(thread);
    return status;
}
