/// Evaluates PAC files for the broker, in a process that the broker can kill.
///
/// Reads requests from the standard input, and writes a line for each: "ok TEXT" or "error TEXT".
///
///     load LENGTH       replaces the script by the LENGTH bytes that follow the line
///     find URL HOST     calls FindProxyForURL
///
/// The process has no environment, no privileges and few system calls. A request that takes longer than the broker's
/// limit ends it, so that it ends without the broker as well.

#include "engine.h"
#include "resolver.h"
#include "sandbox.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum {
    /// The largest script, in bytes: a file of 1 MiB in Latin-1 is at most twice as large in UTF-8.
    SCRIPT_BYTES = 2 << 20,
    LINE_BYTES = 4096,
    /// The time after which a request ends the process; above the limit of the broker.
    SECONDS = 5,
};

static void set_timer(int seconds) {
    const struct itimerval value = {.it_value = {.tv_sec = seconds}};
    setitimer(ITIMER_REAL, &value, NULL);
}

/// Reads exactly this number of bytes; returns `false` at the end of the input.
static bool read_all(char *bytes, size_t length) {
    while (length > 0) {
        const ssize_t count = read(STDIN_FILENO, bytes, length);
        if (count <= 0) return false;
        bytes += count;
        length -= (size_t)count;
    }
    return true;
}

/// Reads a line without its end.
static bool read_line(char line[LINE_BYTES]) {
    for (size_t length = 0; length < LINE_BYTES; length++) {
        if (!read_all(line + length, 1)) return false;
        if (line[length] == '\n') {
            line[length] = '\0';
            return true;
        }
    }
    return false;
}

static void reply(const struct engine_text *text) {
    char line[ENGINE_TEXT_BYTES + 16];
    const int length = snprintf(line, sizeof line, "%s %s\n", text->is_error ? "error" : "ok", text->bytes);
    if (write(STDOUT_FILENO, line, (size_t)length) != length) exit(1);
}

static bool load(const char *number, struct engine_text *text) {
    static char script[SCRIPT_BYTES];
    const unsigned long length = strtoul(number, NULL, 10);
    if (length > sizeof script || !read_all(script, length)) return false;
    engine_load(script, length, text);
    return true;
}

static bool serve(char *line, struct engine_text *text) {
    if (strncmp(line, "load ", 5) == 0) return load(line + 5, text);
    if (strncmp(line, "find ", 5) != 0) return false;
    char *host = strchr(line + 5, ' ');
    if (!host) return false;
    *host++ = '\0';
    engine_find(line + 5, host, text);
    return true;
}

int main(void) {
    static struct engine_text text;
    char line[LINE_BYTES];
    sandbox_limit();
    // Read now, because the file of the time zone cannot be opened later.
    setenv("TZ", ":/etc/localtime", 0);
    tzset();
    if (!resolver_start()) return 1;
    sandbox_close();
    while (read_line(line)) {
        set_timer(SECONDS);
        resolver_begin();
        if (!serve(line, &text)) return 1;
        set_timer(0);
        reply(&text);
    }
    return 0;
}
