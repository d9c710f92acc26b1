/* Downloads URL through the broker at SOCKET into FILE: fetch/start, then fetch/attach on a second connection. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int dial(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address)) { perror(path); exit(1); }
    return fd;
}

/* Reads a line byte by byte, because the body follows it on the second connection. */
static void read_line(int fd, char *line, size_t size) {
    size_t count = 0;
    while (count + 1 < size && read(fd, line + count, 1) == 1 && line[count] != '\n') count++;
    line[count] = 0;
}

int main(int count, char **words) {
    static char line[1 << 20], part[1 << 20];
    if (count != 4) return 64;
    int control = dial(words[1]);
    dprintf(control, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"fetch/start\",\"params\":{\"url\":\"%s\"}}\n", words[2]);
    read_line(control, line, sizeof line);
    char *token = strstr(line, "\"attachToken\":\"");
    if (!token) { fprintf(stderr, "%s\n", line); return 1; }
    token += strlen("\"attachToken\":\"");
    *strchr(token, '"') = 0;
    int body = dial(words[1]);
    dprintf(body, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"fetch/attach\",\"params\":{\"token\":\"%s\",\"side\":\"response\"}}\n", token);
    read_line(body, line, sizeof line);
    if (!strstr(line, "\"result\"")) { fprintf(stderr, "%s\n", line); return 1; }
    int file = open(words[3], O_WRONLY | O_CREAT | O_TRUNC, 0644);
    long long total = 0;
    for (ssize_t size; (size = read(body, part, sizeof part)) > 0; total += size)
        if (write(file, part, size) != size) return 1;
    do read_line(control, line, sizeof line); while (line[0] && !strstr(line, "fetch/completed"));
    char wanted[64];
    snprintf(wanted, sizeof wanted, "\"bodyBytes\":%lld,", total);
    if (!strstr(line, wanted) || strstr(line, "\"error\"")) { fprintf(stderr, "%s\n", line); return 1; }
    printf("%lld\n", total);
    return 0;
}
