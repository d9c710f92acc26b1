// Measures the time until a command is ready, COUNT times in sequence, and prints the median in microseconds.
// Build: cc -O2 start_time.c -o start_time
// Run: start_time COUNT exit|ready COMMAND [ARGUMENT]...
// `ready` means until the command has written to descriptor 3; it is then terminated, which is not counted.
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
extern char **environ;
static double now() {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e6 + t.tv_nsec * 1e-3;
}
static int cmp(const void *a, const void *b) {
    double x = *(double *)a, y = *(double *)b;
    return x < y ? -1 : x > y;
}
int main(int count, char **words) {
    if (count < 4)
        return 2;
    int times = atoi(words[1]), until_ready = !strcmp(words[2], "ready");
    double *all = malloc(times * sizeof *all);
    for (int i = 0; i < times; i++) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC))
            return 1;
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
        if (until_ready)
            posix_spawn_file_actions_adddup2(&actions, ends[1], 3);
        pid_t pid;
        int status;
        double begin = now();
        if (posix_spawnp(&pid, words[3], &actions, 0, words + 3, environ)) {
            perror(words[3]);
            return 1;
        }
        close(ends[1]);
        if (until_ready) {
            struct pollfd wait = {ends[0], POLLIN};
            char byte;
            int is_ready = poll(&wait, 1, 20000) == 1 && read(ends[0], &byte, 1) == 1;
            all[i] = now() - begin;
            kill(pid, SIGTERM);
            waitpid(pid, &status, 0);
            if (!is_ready) {
                fprintf(stderr, "%s did not become ready\n", words[3]);
                return 1;
            }
        } else {
            waitpid(pid, &status, 0);
            all[i] = now() - begin;
            if (status) {
                fprintf(stderr, "%s failed\n", words[3]);
                return 1;
            }
        }
        close(ends[0]);
        posix_spawn_file_actions_destroy(&actions);
    }
    qsort(all, times, sizeof *all, cmp);
    printf("%.1f\n", all[times / 2]);
    return 0;
}
