#ifndef WATCHWORD_CJANSSON_SHIM_H
#define WATCHWORD_CJANSSON_SHIM_H

#include <jansson.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

// Reference counting is a static inline in jansson.h, with atomics where the compiler has them.
static inline json_t *watchword_json_retain(json_t *value) { return json_incref(value); }
static inline void watchword_json_release(json_t *value) { json_decref(value); }

static inline int watchword_json_type(const json_t *value) { return (int)json_typeof(value); }

// As everywhere in Swift, an allocation that fails ends the program. jansson would call the text no JSON; then nobody knows which
// request it was, and whoever made it would wait for ever.
static inline void *watchword_json_allocate(size_t size) {
    void *block = malloc(size);
    if (block == NULL) abort();
    return block;
}

static inline void watchword_json_free_wiping(void *block) {
    if (block != NULL) {
        explicit_bzero(block, malloc_usable_size(block));
        free(block);
    }
}

// Every block that jansson frees is wiped first: a password that passed through a message leaves no copy in the heap.
static inline void watchword_json_use_wiping_allocator(void) {
    json_set_alloc_funcs(watchword_json_allocate, watchword_json_free_wiping);
}

#endif
