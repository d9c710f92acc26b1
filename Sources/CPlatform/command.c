#define _GNU_SOURCE

#include "CPlatform.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

/// Starts the program; see `watchword_start_command`. `attributes` and `actions` are initialised.
static int start(
    const char *path, char *const arguments[], int output, posix_spawn_file_actions_t *actions,
    posix_spawnattr_t *attributes, pid_t *pid) {
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int error = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!error) error = posix_spawn_file_actions_adddup2(actions, output, STDOUT_FILENO);
    if (!error) error = posix_spawn_file_actions_addopen(actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    // libcurl's wake-up sockets have no close-on-exec.
    if (!error) error = posix_spawn_file_actions_addclosefrom_np(actions, STDERR_FILENO + 1);  // guard: command-descriptors
    if (!error) error = posix_spawnattr_setsigmask(attributes, &none);
    if (!error) error = posix_spawnattr_setsigdefault(attributes, &all);
    const short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP;  // guard: command-signals
    if (!error) error = posix_spawnattr_setflags(attributes, flags);
    return error ? error : posix_spawn(pid, path, actions, attributes, arguments, environ);
}

int watchword_start_command(const char *path, char *const arguments[], int32_t *pid, int *output) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return errno;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int error = posix_spawn_file_actions_init(&actions);
    if (!error) {
        error = posix_spawnattr_init(&attributes);
        if (!error) {
            error = start(path, arguments, ends[1], &actions, &attributes, pid);
            posix_spawnattr_destroy(&attributes);
        }
        posix_spawn_file_actions_destroy(&actions);
    }
    close(ends[1]);
    if (error) close(ends[0]);
    else *output = ends[0];
    return error;
}
