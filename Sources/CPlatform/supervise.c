#define _GNU_SOURCE
#include "CFront.h"
#include "CPlatform.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

// The last two only as a job.
static const int forwarded[] = {SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};
enum { FORWARDED = sizeof forwarded / sizeof *forwarded };

// Returns the terminal if a shell has started this process as a job; otherwise -1. The program then gets a process group of its own,
// so that a signal to the job reaches it once: from the terminal directly, and from the shell through this process.
static int terminal_of_job(void) {
    if (getpgrp() != getpid() || getsid(0) == getpid()) return -1;
    return open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
}

// Moves the terminal from one process group to another one, unless a third one has it.
static void move_terminal(int terminal, pid_t from, pid_t to) {
    if (terminal < 0 || tcgetpgrp(terminal) != from) return;
    // A group in the background is stopped by this signal if it takes the terminal.
    sigset_t one, before;
    sigemptyset(&one);
    sigaddset(&one, SIGTTOU);
    sigprocmask(SIG_BLOCK, &one, &before);
    tcsetpgrp(terminal, to);
    sigprocmask(SIG_SETMASK, &before, NULL);
}

// Stops this process as the program was stopped, so that the shell takes the terminal back. If the shell has meanwhile brought this
// process to the foreground, the program gets the terminal instead.
static void stop_too(pid_t pid, int terminal) {
    if (tcgetpgrp(terminal) != getpgrp()) {
        raise(SIGSTOP);
    } else {
        move_terminal(terminal, getpgrp(), pid);
        kill(-pid, SIGCONT);
    }
}

// Lets the kernel send SIGIO when the broker sends something or ends (fcntl(2), O_ASYNC).
static void watch(int broker) {
    int flags = fcntl(broker, F_GETFL);
    fcntl(broker, F_SETOWN, getpid());
    if (flags >= 0) fcntl(broker, F_SETFL, flags | O_ASYNC);
}

static int has_ended(int broker) {
    struct pollfd entry = {.fd = broker, .events = POLLRDHUP};
    return poll(&entry, 1, 0) > 0 && (entry.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

static void say(const char *line) {
    ssize_t count = write(STDERR_FILENO, line, strlen(line));
    (void)count;
}

static void kill_children(void) {
    char text[64 << 10];
    int file = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    ssize_t count = file >= 0 ? read(file, text, sizeof text - 1) : -1;
    if (file >= 0) close(file);
    text[count < 0 ? 0 : count] = 0;
    char *rest = text;
    for (;;) {
        char *next;
        pid_t child = (pid_t)strtol(rest, &next, 10);
        if (next == rest) return;
        kill(child, SIGKILL);
        rest = next;
    }
}

// Kills all descendants. Each leaves its children to this process. Returns the wait status of the program.
static int kill_all(pid_t program) {
    int result = 0;
    kill(program, SIGKILL);
    for (;;) {
        kill_children();
        int status;
        pid_t ended = waitpid(-1, &status, 0);
        if (ended == program) result = status;
        if (ended < 0 && errno != EINTR) return result;
    }
}

// Waits for the end of the process, and passes on the signals that other processes send to this one. A signal from the terminal
// has reached the process already if it is in the same process group.
// - terminal: see `terminal_of_job`.
static int supervise(pid_t pid, const sigset_t *signals, int terminal, const struct watchword_broker *broker) {
    int is_job = terminal >= 0, is_watching = 1;
    for (;;) {
        siginfo_t info;
        int number = sigwaitinfo(signals, &info);
        if (number == SIGCHLD) {
            int status;
            pid_t changed;
            // One signal may stand for several processes, also adopted ones.
            while ((changed = waitpid(-1, &status, WNOHANG | (is_job ? WUNTRACED : 0))) > 0) {
                if (changed != pid) continue;
                if (!WIFSTOPPED(status)) return status;
                stop_too(pid, terminal);
            }
            if (changed < 0 && errno == ECHILD) return 0;
        } else if (number == SIGIO) {
            if (!is_watching || !has_ended(broker->connection)) continue;
            is_watching = 0;
            int is_taken = watchword_take_loopback_port(broker->port) == 0;
            say(is_taken ? broker->has_ended : broker->has_been_replaced);
            if (!is_taken) return kill_all(pid);
        } else if (number > 0) {
            if (number == SIGCONT) move_terminal(terminal, getpgrp(), pid);
            if (is_job || info.si_code != SI_KERNEL) kill(is_job ? -pid : pid, number);
        }
    }
}

int watchword_run_and_wait(
    char *const arguments[], char *const environment[], const struct watchword_broker *broker, int *status) {
    // If it is ignored, which exec inherits, it is never sent, and the status of the process is lost.
    signal(SIGCHLD, SIG_DFL);
    // Adopts descendants whose parents have ended, so that they remain descendants (prctl(2), PR_SET_CHILD_SUBREAPER).
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    int terminal = terminal_of_job();
    sigset_t signals, before, defaults;
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    sigaddset(&signals, SIGIO);
    for (int i = 0; i < FORWARDED - (terminal < 0 ? 2 : 0); i++) sigaddset(&signals, forwarded[i]);
    // Blocked before the start, so that no signal is lost.
    if (sigprocmask(SIG_BLOCK, &signals, &before) != 0) return errno;
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    sigaddset(&defaults, SIGXFSZ);
    posix_spawnattr_t attributes;
    int error = posix_spawnattr_init(&attributes);
    if (!error) {
        short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | (terminal >= 0 ? POSIX_SPAWN_SETPGROUP : 0);
        error = posix_spawnattr_setsigmask(&attributes, &before);
        if (!error) error = posix_spawnattr_setsigdefault(&attributes, &defaults);
        if (!error) error = posix_spawnattr_setflags(&attributes, flags);
        pid_t pid = 0;
        if (!error) error = posix_spawnp(&pid, arguments[0], NULL, &attributes, arguments, environment);
        posix_spawnattr_destroy(&attributes);
        if (!error) {
            move_terminal(terminal, getpgrp(), pid);
            watch(broker->connection);
            // It may have ended before.
            kill(getpid(), SIGIO);
            *status = supervise(pid, &signals, terminal, broker);
            move_terminal(terminal, pid, getpgrp());
        }
    }
    if (terminal >= 0) close(terminal);
    // It may be pending, or come later.
    signal(SIGIO, SIG_IGN);
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
