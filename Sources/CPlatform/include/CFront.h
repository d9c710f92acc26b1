#ifndef WATCHWORD_CFRONT_H
#define WATCHWORD_CFRONT_H

#include <stddef.h>
#include <stdint.h>

// TCP sockets of the loopback interface, and the processes at their other ends.

/// Listens on a TCP port of the loopback interface with a non-blocking, close-on-exec socket. Returns the descriptor, or -1 with
/// errno set.
/// - family: 4 for 127.0.0.1, 6 for ::1.
/// - port: 0 lets the kernel choose one.
/// - bound: receives the port.
int watchword_listen_on_loopback(int family, uint16_t port, uint16_t *bound);

/// Takes a TCP port of both loopback addresses until this process ends. Connections to it are refused. Returns 0, or errno if another
/// program has it.
int watchword_take_loopback_port(uint16_t port);

/// Whether `descriptor` is a TCP socket that listens on the loopback interface. Makes it non-blocking.
/// - family: receives 4 or 6.
/// - port: receives the port.
int watchword_is_listening_on_loopback(int descriptor, int *family, uint16_t *port);

/// Opens a netlink socket for `watchword_peer_socket` (sock_diag(7)), with close-on-exec. Returns the descriptor, or -1 with
/// errno set.
int watchword_socket_diagnosis(void);

/// The socket at the other end of a TCP connection within this machine.
struct watchword_peer_socket {
    /// The user who created the socket.
    uint32_t uid;
    /// The inode, by which proc(5) shows the socket. Never 0: that of a closed socket is 0, and its user then always root.
    uint32_t inode;
    /// The control group in which the socket was created, as `watchword_cgroup` numbers it; 0 if the kernel does not report it.
    uint64_t cgroup;
};

/// Finds the socket at the other end of `socket`. Returns 0, or errno: ENOTCONN if no process has the other end open.
/// - diagnosis: see `watchword_socket_diagnosis`.
int watchword_find_peer_socket(int diagnosis, int socket, struct watchword_peer_socket *peer);

/// A descriptor, and a thread that has it open: the threads of a process need not share their descriptors.
struct watchword_place {
    int32_t thread;
    int32_t descriptor;
};

/// Looks for sockets among the descriptors of all threads of a process. Returns the number of descriptors, `limit` + 1 if there
/// are more than `limit`, of which the rest is not examined, or -1 with errno set. Descriptors that threads share are counted for
/// each of them.
/// - inodes: in ascending order.
/// - places: for each inode, receives a descriptor of the process, or -1.
long watchword_find_sockets(
    int32_t pid, const uint32_t *inodes, struct watchword_place *places, size_t count, size_t limit);

/// Whether the descriptor is this socket.
int watchword_holds_socket(int32_t pid, struct watchword_place place, uint32_t inode);

/// Returns the number of the control group at `path`; 0 if there is none, or `path` is in no unified hierarchy (cgroups(7)).
uint64_t watchword_cgroup(const char *path);

/// Turns off the delay of small segments (tcp(7), TCP_NODELAY).
void watchword_send_without_delay(int socket);

/// Lets the kernel detect that the other machine is gone (tcp(7), SO_KEEPALIVE).
void watchword_keep_alive(int socket);

/// Creates two connected Unix stream sockets, non-blocking and close-on-exec. Returns 0 or errno.
int watchword_socket_pair(int pair[2]);

#endif
