// The least that a proxy can do: for one tunnel at a time, moves bytes between two sockets. Shows what a download through a
// tunnel costs on this machine without any broker.
// Build: cc -O2 relay.c -o relay
// Run: relay PORT
// Listens on 127.0.0.1, and connects to the port that CONNECT names, on 127.0.0.1 as well.
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static char part[128 << 10];

static struct sockaddr_in here(int port) {
    return (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

// Moves the bytes that have arrived. Returns 0 at the end.
static int move(int from, int to) {
    ssize_t count;
    while ((count = recv(from, part, sizeof part, MSG_DONTWAIT)) > 0)
        for (ssize_t sent = 0, now; sent < count; sent += now)
            if ((now = send(to, part + sent, count - sent, MSG_NOSIGNAL)) < 0) return 0;
    return count != 0;
}

static void relay(int program) {
    ssize_t count = recv(program, part, 4096, 0);
    part[count > 0 ? count : 0] = 0;
    char *colon = strchr(part, ':');
    struct sockaddr_in address = here(colon ? atoi(colon + 1) : 0);
    int origin = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(origin, (struct sockaddr *)&address, sizeof address) == 0) {
        dprintf(program, "HTTP/1.1 200 OK\r\n\r\n");
        struct pollfd both[] = {{program, POLLIN, 0}, {origin, POLLIN, 0}};
        int is_open = 1;
        while (is_open && poll(both, 2, -1) >= 0) {
            if (both[0].revents) is_open = move(program, origin);
            if (is_open && both[1].revents) is_open = move(origin, program);
        }
    }
    close(origin);
    close(program);
}

int main(int count, char **words) {
    struct sockaddr_in address = here(count == 2 ? atoi(words[1]) : 0);
    int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 8)) {
        perror("relay");
        return 1;
    }
    puts("ready");
    fflush(stdout);
    for (int program; (program = accept(listener, NULL, NULL)) >= 0;) relay(program);
}
