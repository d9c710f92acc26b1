#define _GNU_SOURCE
#include "CFront.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <linux/inet_diag.h>
#include <linux/magic.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

// Returns a socket with an address of the loopback interface, or -1 with errno set.
static int bind_on_loopback(int family, uint16_t port, uint16_t *bound) {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address;
    memset(&address, 0, sizeof address);
    socklen_t length;
    if (family == 6) {
        address.v6 = (struct sockaddr_in6){
            .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
        length = sizeof address.v6;
    } else {
        address.v4 = (struct sockaddr_in){
            .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        length = sizeof address.v4;
    }
    int descriptor = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (descriptor < 0) return -1;
    int on = 1;
    // A front that is opened again must not wait for the connections of the last one to time out.
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (family == 6) setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (bind(descriptor, &address.any, length) != 0 || getsockname(descriptor, &address.any, &length) != 0) {
        int error = errno;
        close(descriptor);
        errno = error;
        return -1;
    }
    *bound = ntohs(family == 6 ? address.v6.sin6_port : address.v4.sin_port);
    return descriptor;
}

int watchword_listen_on_loopback(int family, uint16_t port, uint16_t *bound) {
    int descriptor = bind_on_loopback(family, port, bound);
    if (descriptor < 0 || listen(descriptor, 1024) == 0) return descriptor;
    int error = errno;
    close(descriptor);
    errno = error;
    return -1;
}

int watchword_take_loopback_port(uint16_t port) {
    for (int family = 4; family <= 6; family += 2) {
        uint16_t bound;
        int descriptor = bind_on_loopback(family, port, &bound);
        if (descriptor >= 0) {
            // Otherwise another program could bind it, too, and listen.
            int off = 0;
            setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &off, sizeof off);
        } else if (errno != EADDRNOTAVAIL && errno != EAFNOSUPPORT) {
            return errno;
        }
    }
    return 0;
}

int watchword_is_listening_on_loopback(int descriptor, int *family, uint16_t *port) {
    int is_listening = 0, type = 0;
    socklen_t length = sizeof is_listening;
    if (getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &length) != 0 || !is_listening) return 0;
    length = sizeof type;
    if (getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &length) != 0 || type != SOCK_STREAM) return 0;
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address;
    length = sizeof address;
    if (getsockname(descriptor, &address.any, &length) != 0) return 0;
    if (address.any.sa_family == AF_INET && address.v4.sin_addr.s_addr == htonl(INADDR_LOOPBACK)) {
        *family = 4;
        *port = ntohs(address.v4.sin_port);
    } else if (address.any.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&address.v6.sin6_addr)) {
        *family = 6;
        *port = ntohs(address.v6.sin6_port);
    } else {
        return 0;
    }
    int flags = fcntl(descriptor, F_GETFL);
    return flags >= 0 && fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) == 0;
}

int watchword_socket_diagnosis(void) { return socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG); }

// Fills in one end of a connection, as IPv4 or IPv6. Returns the address family, or -1.
static int read_end(
    int socket, int (*get)(int, struct sockaddr *, socklen_t *), __be16 *port, __be32 words[4]) {
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    if (get(socket, (struct sockaddr *)&address, &length) != 0) return -1;
    if (address.ss_family == AF_INET) {
        struct sockaddr_in *v4 = (struct sockaddr_in *)&address;
        *port = v4->sin_port;
        memcpy(words, &v4->sin_addr, 4);
        return AF_INET;
    }
    if (address.ss_family != AF_INET6) return -1;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&address;
    *port = v6->sin6_port;
    memcpy(words, &v6->sin6_addr, 16);
    return AF_INET6;
}

#ifndef INET_DIAG_CGROUP_ID
#define INET_DIAG_CGROUP_ID 21
#endif

// Since Linux 5.9.
static uint64_t read_cgroup(struct nlmsghdr *answer, struct inet_diag_msg *found) {
    int left = (int)(answer->nlmsg_len - NLMSG_LENGTH(sizeof *found));
    for (struct rtattr *part = (struct rtattr *)(found + 1); RTA_OK(part, left); part = RTA_NEXT(part, left)) {
        if (part->rta_type != INET_DIAG_CGROUP_ID || RTA_PAYLOAD(part) != sizeof(uint64_t)) continue;
        uint64_t group;
        memcpy(&group, RTA_DATA(part), sizeof group);
        return group;
    }
    return 0;
}

int watchword_find_peer_socket(int diagnosis, int socket, struct watchword_peer_socket *peer) {
    struct {
        struct nlmsghdr header;
        struct inet_diag_req_v2 request;
    } question;
    memset(&question, 0, sizeof question);
    struct inet_diag_sockid *id = &question.request.id;
    // The other end's own address is its source.
    int family = read_end(socket, getpeername, &id->idiag_sport, id->idiag_src);
    if (family < 0 || read_end(socket, getsockname, &id->idiag_dport, id->idiag_dst) != family) return EAFNOSUPPORT;
    id->idiag_cookie[0] = id->idiag_cookie[1] = INET_DIAG_NOCOOKIE;
    static uint32_t last = 0;
    uint32_t sequence = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
    question.header = (struct nlmsghdr){
        .nlmsg_len = sizeof question, .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST,
        .nlmsg_seq = sequence};
    question.request.sdiag_family = (uint8_t)family;
    question.request.sdiag_protocol = IPPROTO_TCP;
    question.request.idiag_states = ~0u;
    if (send(diagnosis, &question, sizeof question, 0) != sizeof question) return errno;
    for (int tries = 0; tries < 8; tries++) {
        union {
            struct nlmsghdr header;
            char bytes[4096];
        } answer;
        // The kernel answers within the call to send.
        ssize_t count = recv(diagnosis, &answer, sizeof answer, MSG_DONTWAIT);
        if (count < 0) return errno;
        if (!NLMSG_OK(&answer.header, (size_t)count)) return EPROTO;
        // An answer to an earlier question that was given up.
        if (answer.header.nlmsg_seq != sequence) continue;
        if (answer.header.nlmsg_type == NLMSG_ERROR) {
            int error = -((struct nlmsgerr *)NLMSG_DATA(&answer.header))->error;
            return error == ENOENT ? ENOTCONN : error != 0 ? error : EPROTO;
        }
        if (answer.header.nlmsg_len < NLMSG_LENGTH(sizeof(struct inet_diag_msg))) return EPROTO;
        struct inet_diag_msg *found = (struct inet_diag_msg *)NLMSG_DATA(&answer.header);
        // A socket that no process has open belongs to root, regardless of its creator, and its bytes can still be read. One that
        // is only shut down for writing still has an inode, and its user is right.
        if (found->idiag_inode == 0) return ENOTCONN;
        *peer = (struct watchword_peer_socket){
            .uid = found->idiag_uid, .inode = found->idiag_inode, .cgroup = read_cgroup(&answer.header, found)};
        return 0;
    }
    return EPROTO;
}

// Returns the inode of the socket to which a link of /proc/PID/fd leads; 0 for another file.
static uint32_t socket_inode(int folder, const char *name) {
    static const char prefix[] = "socket:[";
    char target[40];
    ssize_t count = readlinkat(folder, name, target, sizeof target - 1);
    if (count < (ssize_t)sizeof prefix || memcmp(target, prefix, sizeof prefix - 1) != 0) return 0;
    target[count] = 0;
    return (uint32_t)strtoul(target + sizeof prefix - 1, NULL, 10);
}

static int compare(const void *left, const void *right) {
    uint32_t first = *(const uint32_t *)left, second = *(const uint32_t *)right;
    return first < second ? -1 : first > second;
}

struct search {
    const uint32_t *inodes;
    struct watchword_place *places;
    size_t count, limit, examined;
};

static DIR *open_folder(const char *path) {
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return NULL;
    DIR *entries = fdopendir(folder);
    if (entries) return entries;
    int error = errno;
    close(folder);
    errno = error;
    return NULL;
}

// Looks at the descriptors of one thread. Returns -1 with errno set if they cannot be read.
static int search_thread(struct search *search, int32_t thread, const char *path) {
    DIR *entries = open_folder(path);
    if (!entries) return -1;
    for (struct dirent *entry; (entry = readdir(entries));) {
        if (entry->d_name[0] == '.') continue;
        if (++search->examined > search->limit) break;
        uint32_t inode = socket_inode(dirfd(entries), entry->d_name);
        uint32_t *found = inode ? bsearch(&inode, search->inodes, search->count, sizeof inode, compare) : NULL;
        if (found)
            search->places[found - search->inodes] =
                (struct watchword_place){.thread = thread, .descriptor = atoi(entry->d_name)};
    }
    closedir(entries);
    return 0;
}

long watchword_find_sockets(
    int32_t pid, const uint32_t *inodes, struct watchword_place *places, size_t count, size_t limit) {
    for (size_t index = 0; index < count; index++) places[index] = (struct watchword_place){pid, -1};
    struct search search = {inodes, places, count, limit, 0};
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    if (search_thread(&search, pid, path) != 0) return -1;
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *threads = open_folder(path);
    if (!threads) return -1;
    for (struct dirent *entry; search.examined <= limit && (entry = readdir(threads));) {
        int32_t thread = atoi(entry->d_name);
        if (thread <= 0 || thread == pid) continue;
        // Nearly all threads share the table of the process. If that cannot be known, it is read again.
        if (syscall(SYS_kcmp, pid, thread, KCMP_FILES, 0, 0) == 0) continue;
        snprintf(path, sizeof path, "/proc/%d/task/%d/fd", pid, thread);
        if (search_thread(&search, thread, path) == 0 || errno == ENOENT || errno == ESRCH) continue;
        int error = errno;
        closedir(threads);
        errno = error;
        return -1;
    }
    closedir(threads);
    return (long)search.examined;
}

int watchword_holds_socket(int32_t pid, struct watchword_place place, uint32_t inode) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/fd/%d", pid, place.thread, place.descriptor);
    return socket_inode(AT_FDCWD, path) == inode;
}

uint64_t watchword_cgroup(const char *path) {
    struct statfs system;
    struct stat status;
    if (statfs(path, &system) != 0 || system.f_type != CGROUP2_SUPER_MAGIC || stat(path, &status) != 0) return 0;
    return status.st_ino;
}

void watchword_send_without_delay(int socket) {
    int on = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void watchword_keep_alive(int socket) {
    int on = 1;
    setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

int watchword_socket_pair(int pair[2]) {
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0 ? 0 : errno;
}
