// Load generator for an HTTP proxy: CONNECTIONS permanent connections with one GET request outstanding on each, N in all.
// Build: cc -O2 proxy_load.c -o proxy_load
// Run: proxy_load PORT CONNECTIONS N URL
// Connects to 127.0.0.1. A response without status 200 or Content-Length, and a closed connection, are errors: exits with 1.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
enum { ROOM = 1 << 16 };
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}
static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}
// Returns the size of the complete response in `in`, 0 if it is incomplete, or -1.
static long response(const char *in, size_t count) {
    const char *end = memmem(in, count, "\r\n\r\n", 4);
    if (!end)
        return count < ROOM / 2 ? 0 : -1;
    if (strncmp(in, "HTTP/1.1 200 ", 13))
        return -1;
    for (const char *p = in; p < end; p++)
        if (*p == '\n' && !strncasecmp(p + 1, "Content-Length:", 15)) {
            long size = end + 4 - in + atol(p + 16);
            return size > ROOM ? -1 : size <= (long)count ? size : 0;
        }
    return -1;
}
int main(int c, char **v) {
    if (c != 5) {
        fprintf(stderr, "usage: proxy_load PORT CONNECTIONS N URL\n");
        return 2;
    }
    int connections = atoi(v[2]), total = atoi(v[3]), sent = 0, done = 0;
    char request[1024], host[256];
    if (sscanf(v[4], "http://%255[^/]", host) != 1)
        return 2;
    int length = snprintf(
        request, sizeof request, "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: load/1\r\nAccept: */*\r\n\r\n", v[4], host);
    struct connection {
        int socket;
        size_t count;
        double since;
        char in[ROOM];
    } *all = calloc(connections, sizeof *all);
    double *times = malloc(sizeof *times * total);
    int loop = epoll_create1(0), on = 1;
    for (int i = 0; i < connections; i++) {
        struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(v[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        all[i].socket = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(all[i].socket, (void *)&to, sizeof to)) {
            perror("connect");
            return 1;
        }
        setsockopt(all[i].socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = i};
        epoll_ctl(loop, EPOLL_CTL_ADD, all[i].socket, &event);
    }
    double begin = now();
    for (int i = 0; i < connections && sent < total; i++, sent++) {
        all[i].since = now();
        if (write(all[i].socket, request, length) != length)
            return 1;
    }
    struct epoll_event events[64];
    while (done < total) {
        int count = epoll_wait(loop, events, 64, 20000);
        if (count <= 0) {
            fprintf(stderr, "stalled: %d of %d\n", done, total);
            return 1;
        }
        for (int k = 0; k < count; k++) {
            struct connection *one = all + events[k].data.u32;
            ssize_t got = read(one->socket, one->in + one->count, ROOM - one->count);
            if (got <= 0) {
                fprintf(stderr, "closed after %d of %d\n", done, total);
                return 1;
            }
            one->count += got;
            long size = response(one->in, one->count);
            if (size < 0) {
                fprintf(stderr, "%.*s\n", (int)(one->count < 400 ? one->count : 400), one->in);
                return 1;
            }
            if (size == 0)
                continue;
            memmove(one->in, one->in + size, one->count - size);
            one->count -= size;
            double time = now();
            times[done++] = time - one->since;
            if (sent == total)
                continue;
            sent++;
            one->since = time;
            if (write(one->socket, request, length) != length)
                return 1;
        }
    }
    double seconds = now() - begin;
    qsort(times, done, sizeof *times, compare);
    printf("%d requests, %d connections: %.0f/s  p50 %.0f us p99 %.0f us\n", total, connections, total / seconds,
           times[done / 2] * 1e6, times[(int)(done * .99)] * 1e6);
}
