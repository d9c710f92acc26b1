#define _GNU_SOURCE
#include "resolver.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    /// The longest name, with its end (RFC 1035 section 2.3.4).
    NAME_BYTES = 256,
    /// The limits for one evaluation.
    LOOKUPS = 64,
    MILLISECONDS = 1000,
    /// The number of lookups that may hang before the process ends.
    HANGING = 16,
};

/// The question for the addresses of this machine.
static const char own_question[] = "*";

/// The end of the socket in this process.
static int peer = -1;
static int lookups;
static struct timespec end;
/// The number of questions whose answers are outstanding, because they came too late.
static int outstanding;

// MARK: The process

static void append(char *addresses, const struct sockaddr *address) {
    char text[INET6_ADDRSTRLEN];
    const void *bytes = address->sa_family == AF_INET ? (const void *)&((const struct sockaddr_in *)address)->sin_addr
                                                       : (const void *)&((const struct sockaddr_in6 *)address)->sin6_addr;
    if (!inet_ntop(address->sa_family, bytes, text, sizeof text)) return;
    const size_t length = strlen(addresses);
    if (length + strlen(text) + 2 > RESOLVER_BYTES) return;
    if (length) strcat(addresses, ";");
    strcat(addresses, text);
}

/// Appends the local address of a connection to a documentation address (RFC 5737, RFC 3849). Nothing is sent.
static void append_own(char *addresses, int family) {
    struct sockaddr_storage address = {.ss_family = (sa_family_t)family};
    socklen_t length = sizeof(struct sockaddr_in);
    if (family == AF_INET) {
        struct sockaddr_in *target = (struct sockaddr_in *)&address;
        target->sin_port = htons(53);
        inet_pton(AF_INET, "192.0.2.1", &target->sin_addr);
    } else {
        struct sockaddr_in6 *target = (struct sockaddr_in6 *)&address;
        length = sizeof *target;
        target->sin6_port = htons(53);
        inet_pton(AF_INET6, "2001:db8::1", &target->sin6_addr);
    }
    const int descriptor = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0) return;
    if (connect(descriptor, (struct sockaddr *)&address, length) == 0
        && getsockname(descriptor, (struct sockaddr *)&address, &length) == 0)
        append(addresses, (struct sockaddr *)&address);
    close(descriptor);
}

/// Returns `false` if the lookup hangs. Its memory is then still in use.
static bool look_up(const char *name, char *addresses) {
    struct gaicb *request = calloc(1, sizeof *request);
    struct addrinfo *hints = calloc(1, sizeof *hints);
    char *copy = strdup(name);
    if (!request || !hints || !copy) _exit(1);
    hints->ai_socktype = SOCK_STREAM;
    request->ar_name = copy;
    request->ar_request = hints;
    const struct timespec limit = {.tv_sec = MILLISECONDS / 1000};
    if (getaddrinfo_a(GAI_NOWAIT, &request, 1, NULL) == 0) {
        const struct gaicb *const list[] = {request};
        gai_suspend(list, 1, &limit);
        if (gai_error(request) == EAI_INPROGRESS && gai_cancel(request) != EAI_CANCELED) return false;
        if (gai_error(request) == 0) {
            for (struct addrinfo *found = request->ar_result; found; found = found->ai_next)
                if (found->ai_family == AF_INET || found->ai_family == AF_INET6) append(addresses, found->ai_addr);
            freeaddrinfo(request->ar_result);
        }
    }
    free(request);
    free(hints);
    free(copy);
    return true;
}

/// Answers each question until the other process ends.
static void serve(int socket) {
    for (int hanging = 0; hanging < HANGING;) {
        char name[NAME_BYTES] = "", addresses[RESOLVER_BYTES] = "";
        const ssize_t length = recv(socket, name, sizeof name - 1, 0);
        if (length < 0 && errno == EINTR) continue;
        if (length <= 0) return;
        if (strcmp(name, own_question) == 0) {
            append_own(addresses, AF_INET);
            append_own(addresses, AF_INET6);
        } else if (!look_up(name, addresses)) {
            hanging++;
        }
        // The terminating zero is sent too, so that no answer is empty.
        if (send(socket, addresses, strlen(addresses) + 1, MSG_NOSIGNAL) < 0) return;
    }
}

bool resolver_start(void) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return false;
    const pid_t process = fork();
    if (process < 0) return false;
    if (process == 0) {
        close(ends[0]);
        close(STDIN_FILENO);
        close(STDOUT_FILENO);
        serve(ends[1]);
        _exit(0);
    }
    close(ends[1]);
    peer = ends[0];
    return true;
}

// MARK: Questions

static int milliseconds_left(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const long left = (end.tv_sec - now.tv_sec) * 1000 + (end.tv_nsec - now.tv_nsec) / 1000000;
    return left > 0 ? (int)left : 0;
}

void resolver_begin(void) {
    lookups = 0;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += MILLISECONDS / 1000;
}

/// Receives one answer within the time of the evaluation. Without the other process, this one ends too, so that the broker
/// starts a new one.
static bool receive(char *addresses) {
    struct pollfd entry = {.fd = peer, .events = POLLIN};
    if (poll(&entry, 1, milliseconds_left()) <= 0) return false;
    const ssize_t length = read(peer, addresses, RESOLVER_BYTES - 1);
    if (length <= 0) _exit(1);
    addresses[length] = '\0';
    return true;
}

static bool ask(const char *question, char *addresses) {
    if (peer < 0 || lookups++ >= LOOKUPS) return false;
    for (; outstanding > 0; outstanding--)
        if (!receive(addresses)) return false;
    if (write(peer, question, strlen(question)) < 0) _exit(1);
    outstanding = 1;
    if (!receive(addresses)) return false;
    outstanding = 0;
    return *addresses != '\0';
}

bool resolver_find(const char *name, char addresses[RESOLVER_BYTES]) {
    if (!*name || strlen(name) >= NAME_BYTES || strcmp(name, own_question) == 0) return false;
    return ask(name, addresses);
}

bool resolver_own(char addresses[RESOLVER_BYTES]) { return ask(own_question, addresses); }
