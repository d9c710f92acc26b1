#define _GNU_SOURCE
#include "TestEnvironment.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[64];

static void set(const char *name, const char *kind, const char *file) {
    char value[128];
    snprintf(value, sizeof value, "%s%s/%s", kind, folder, file);
    setenv(name, value, 1);
}

// Before there is a second thread: setenv(3) frees the list that getenv(3) reads in others.
__attribute__((constructor)) static void set_environment(void) {
    snprintf(folder, sizeof folder, "/tmp/watchword-tests-%d", (int)getpid());
    set("KRB5_CONFIG", "", "krb5.conf");
    set("KRB5_KDC_PROFILE", "", "kdc.conf");
    set("KRB5_KTNAME", "FILE:", "keytab");
    set("KRB5CCNAME", "FILE:", "tickets");
    set("SOFTHSM2_CONF", "", "softhsm2.conf");
}

// Before anything else uses OpenSSL. Without this, exit(3) frees what OpenSSL shares between its threads, while threads of test
// servers, or one that waits for a KDC, may still use it.
__attribute__((constructor)) static void leave_openssl_at_exit(void) { OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL); }

// As in the programs: OpenSSL writes to sockets whose other end may be closed.
__attribute__((constructor)) static void ignore_broken_pipes(void) { signal(SIGPIPE, SIG_IGN); }

const char *watchword_test_folder(void) { return folder; }

int watchword_test_pipe(int ends[2]) { return pipe2(ends, O_CLOEXEC); }

int watchword_test_close_from(posix_spawn_file_actions_t *actions, int lowest) {
    return posix_spawn_file_actions_addclosefrom_np(actions, lowest);
}
