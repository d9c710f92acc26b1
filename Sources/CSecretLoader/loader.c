// libsecret and its dependencies (12 libraries, a quarter of the start-up time and 4 MiB) are loaded when the keyring is
// first used. This file defines each function in functions.h as a jump through a table that dlsym(3) fills. With these
// definitions, and with --as-needed, the linker does not link the libraries. If a function is missing in functions.h, they
// are linked again, and Tests/EndToEnd/test_keyring.py fails.
//
// The symbols are hidden, so that the libraries call their own functions and never these.

#define _GNU_SOURCE
#include <CSecretLoader.h>

#if defined(__x86_64__) || defined(__aarch64__)
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>

// The table has pages of its own, which become read-only when it is filled. PAGE is the largest page size of the architecture.
#ifdef __x86_64__
#define PAGE 4096
#define JUMP "endbr64\n jmp *%c0(%%rip)"
#else
#define PAGE 65536
#define JUMP "hint #34\n adrp x16, %c0\n ldr x16, [x16, :lo12:%c0]\n br x16"
#endif

#define FUNCTION(name) void *name;
static union {
    struct {
#include "functions.h"
    } of;
    void *each[PAGE / sizeof(void *)];
} slots __attribute__((aligned(PAGE)));
#undef FUNCTION

#define FUNCTION(name) #name,
static const char *const names[] = {
#include "functions.h"
};
#undef FUNCTION

enum { FUNCTIONS = sizeof names / sizeof *names };
_Static_assert(sizeof slots == PAGE, "the functions need more than one page");

#define FUNCTION(name) \
    __attribute__((naked, visibility("hidden"))) void name(void) { __asm__(JUMP : : "i"(&slots.of.name)); }
#include "functions.h"
#undef FUNCTION

static const char *link_error(void) {
    const char *text = dlerror();
    return text != NULL ? text : "no reason given";
}

// If memory is exhausted, GLib logs a message before it aborts. Logging acquires locks that the thread may hold
// already, such as the lock of GLib's constructors. The thread would then wait forever, and hold the dynamic linker's
// lock. The log handler `report` therefore aborts without logging.
enum { FATAL = 1 << 1 | 1 << 2 };  // G_LOG_FLAG_FATAL, G_LOG_LEVEL_ERROR
typedef void Report(const char *domain, int level, const char *message, void *data);
static Report *report_of_glib;

static void report(const char *domain, int level, const char *message, void *data) {
    if (level & FATAL) abort();
    report_of_glib(domain, level, message, data);
}

static void load_glib(void) {
    void *glib = dlopen("libglib-2.0.so.0", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (glib == NULL) return;
    report_of_glib = (Report *)dlsym(glib, "g_log_default_handler");
    Report *(*set)(Report *, void *) = (Report * (*)(Report *, void *)) dlsym(glib, "g_log_set_default_handler");
    if (report_of_glib != NULL && set != NULL) set(report, NULL);
}

static const char *load(void) {
    static void *library;
    if (library != NULL) return NULL;
    load_glib();
    // RTLD_NOW: see `linking` in Package.swift.
    void *loaded = dlopen("libsecret-1.so.0", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (loaded == NULL) return link_error();
    for (size_t index = 0; index < FUNCTIONS; index++) {
        slots.each[index] = dlsym(loaded, names[index]);
        if (slots.each[index] == NULL) return link_error();
    }
    if (mprotect(&slots, sizeof slots, PROT_READ) != 0) return "cannot make the table of its functions read-only";
    library = loaded;
    return NULL;
}

const char *watchword_load_secret(void) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    const char *reason = load();
    pthread_mutex_unlock(&lock);
    return reason;
}

#else

const char *watchword_load_secret(void) { return (void *)0; }

#endif
