#define _GNU_SOURCE

#include "CPlatform.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

/// A program to start. An input below 0 is empty.
struct program {
    const char *path;
    char *const *arguments, *const *environment;
    int input, output;
};

/// Starts the program; see `watchword_start_command`. `attributes` and `actions` are initialised.
static int start(
    const struct program *program, posix_spawn_file_actions_t *actions, posix_spawnattr_t *attributes, pid_t *pid) {
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    const int input = program->input, output = program->output;
    int error = input >= 0 ? posix_spawn_file_actions_adddup2(actions, input, STDIN_FILENO)
                           : posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!error) error = posix_spawn_file_actions_adddup2(actions, output, STDOUT_FILENO);
    if (!error) error = posix_spawn_file_actions_addopen(actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    // libcurl's wake-up sockets have no close-on-exec.
    if (!error) error = posix_spawn_file_actions_addclosefrom_np(actions, STDERR_FILENO + 1);  // guard: command-descriptors
    if (!error) error = posix_spawnattr_setsigmask(attributes, &none);
    if (!error) error = posix_spawnattr_setsigdefault(attributes, &all);
    const short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP;
    if (!error) error = posix_spawnattr_setflags(attributes, flags);
    return error ? error : posix_spawn(
        pid, program->path, actions, attributes, program->arguments, program->environment);
}

static int start_program(const struct program *program, pid_t *pid) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int error = posix_spawn_file_actions_init(&actions);
    if (error) return error;
    error = posix_spawnattr_init(&attributes);
    if (!error) {
        error = start(program, &actions, &attributes, pid);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

int watchword_start_command(const char *path, char *const arguments[], int32_t *pid, int *output) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return errno;
    const struct program program = {
        .path = path, .arguments = arguments, .environment = environ, .input = -1, .output = ends[1]};
    const int error = start_program(&program, pid);
    close(ends[1]);
    if (error) close(ends[0]);
    else *output = ends[0];
    return error;
}

int watchword_start_evaluator(const char *path, const char *zone, int32_t *pid, int *socket) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return errno;
    char variable[PATH_MAX] = "";
    if (zone) snprintf(variable, sizeof variable, "TZ=%s", zone);
    char *const arguments[] = {(char *)path, NULL}, *const environment[] = {zone ? variable : NULL, NULL};
    const struct program program = {
        .path = path, .arguments = arguments, .environment = environment, .input = ends[1], .output = ends[1]};
    const int error = start_program(&program, pid);
    close(ends[1]);
    if (error) close(ends[0]);
    else *socket = ends[0];
    return error;
}
