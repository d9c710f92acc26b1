#define _GNU_SOURCE
#include "CPlatform.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static const int forwarded[] = {SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2};
enum { FORWARDED = sizeof forwarded / sizeof *forwarded };

// Waits for the end of the process, and passes on the signals that other processes send to this one. A signal from the terminal
// has reached the process already, because it is in the same process group.
static int supervise(pid_t pid, const sigset_t *signals) {
    for (;;) {
        siginfo_t info;
        int number = sigwaitinfo(signals, &info);
        if (number == SIGCHLD) {
            int status;
            pid_t ended = waitpid(pid, &status, WNOHANG);
            if (ended == pid && (WIFEXITED(status) || WIFSIGNALED(status))) return status;
            if (ended < 0 && errno == ECHILD) return 0;
        } else if (number > 0 && info.si_code != SI_KERNEL) {
            kill(pid, number);
        }
    }
}

int watchword_run_and_wait(char *const arguments[], char *const environment[], int *status) {
    // If it is ignored, which exec inherits, it is never sent, and the status of the process is lost.
    signal(SIGCHLD, SIG_DFL);
    sigset_t signals, before, defaults;
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    for (int i = 0; i < FORWARDED; i++) sigaddset(&signals, forwarded[i]);
    // Blocked before the start, so that no signal is lost.
    if (sigprocmask(SIG_BLOCK, &signals, &before) != 0) return errno;
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    sigaddset(&defaults, SIGXFSZ);
    posix_spawnattr_t attributes;
    int error = posix_spawnattr_init(&attributes);
    if (!error) {
        error = posix_spawnattr_setsigmask(&attributes, &before);
        if (!error) error = posix_spawnattr_setsigdefault(&attributes, &defaults);
        if (!error) error = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
        pid_t pid = 0;
        if (!error) error = posix_spawnp(&pid, arguments[0], NULL, &attributes, arguments, environment);
        posix_spawnattr_destroy(&attributes);
        if (!error) *status = supervise(pid, &signals);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    return error;
}

void watchword_end_like(int status) {
    if (!WIFSIGNALED(status)) _exit(WEXITSTATUS(status));
    // The program has written its core file, if any.
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    int number = WTERMSIG(status);
    signal(number, SIG_DFL);
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, number);
    sigprocmask(SIG_UNBLOCK, &one, NULL);
    raise(number);
    _exit(128 + number);
}
