#ifndef WATCHWORD_COPENSSL_TOKENS_H
#define WATCHWORD_COPENSSL_TOKENS_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>

// The parts of PKCS#11 (version 2.40) that libp11's engine does not offer: the list of tokens, and the state of their PINs.
// They are declared here because the build dependencies include no PKCS#11 header.

// CK_TOKEN_INFO. Texts are padded with blanks.
typedef struct {
    unsigned char label[32];
    unsigned char manufacturer[32];
    unsigned char model[16];
    unsigned char serial[16];
    unsigned long flags;
    unsigned long counts[10];
    unsigned char versions[4];
    unsigned char time[16];
} watchword_token_info;

// The start of CK_FUNCTION_LIST.
typedef struct {
    unsigned char version[2];
    unsigned long (*initialize)(void *arguments);
    void *finalize;
    void *get_info;
    void *get_function_list;
    unsigned long (*get_slot_list)(unsigned char token_present, unsigned long *slots, unsigned long *count);
    void *get_slot_info;
    unsigned long (*get_token_info)(unsigned long slot, watchword_token_info *info);
} watchword_token_module;

// CKF_USER_PIN_COUNT_LOW, CKF_USER_PIN_FINAL_TRY, CKF_USER_PIN_LOCKED
static const unsigned long watchword_token_pin_count_low = 0x10000;
static const unsigned long watchword_token_pin_final_try = 0x20000;
static const unsigned long watchword_token_pin_locked = 0x40000;

// Loads a module, and initializes it if necessary. The module is never unloaded. Returns NULL on failure.
static inline const watchword_token_module *watchword_token_module_at(const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return NULL;
    unsigned long (*get)(const watchword_token_module **);
    *(void **)&get = dlsym(library, "C_GetFunctionList");
    const watchword_token_module *module = NULL;
    if (get == NULL || get(&module) != 0 || module == NULL) return NULL;
    // CK_C_INITIALIZE_ARGS with CKF_OS_LOCKING_OK.
    struct {
        void *mutexes[4];
        unsigned long flags;
        void *reserved;
    } arguments = {{NULL, NULL, NULL, NULL}, 2, NULL};
    unsigned long status = module->initialize(&arguments);
    const unsigned long already_initialized = 0x191;
    return status == 0 || status == already_initialized ? module : NULL;
}

// Calls `found` with each token that is plugged in.
static inline void watchword_token_each(
    const watchword_token_module *module, void (*found)(const watchword_token_info *info, void *context), void *context) {
    unsigned long count = 0;
    if (module->get_slot_list(1, NULL, &count) != 0 || count == 0) return;
    // Leaves room for tokens that are plugged in between the two calls; without it the second call would fail.
    count += 16;
    unsigned long *slots = calloc(count, sizeof *slots);
    if (slots == NULL) return;
    if (module->get_slot_list(1, slots, &count) == 0) {
        for (unsigned long index = 0; index < count; index++) {
            watchword_token_info info;
            if (module->get_token_info(slots[index], &info) == 0) found(&info, context);
        }
    }
    free(slots);
}

#endif
