#ifndef WATCHWORD_CJANSSON_SHIM_H
#define WATCHWORD_CJANSSON_SHIM_H

#include <jansson.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

// jansson.h defines reference counting in static inline functions, which use atomics if the compiler supports them.
static inline json_t *watchword_json_retain(json_t *value) { return json_incref(value); }
static inline void watchword_json_release(json_t *value) { json_decref(value); }

// Returns a member of an object, or NULL. Comparing the names of few members is faster than hashing one.
static inline json_t *watchword_json_member(json_t *object, const char *name, size_t length) {
    if (json_object_size(object) > 2) return json_object_getn(object, name, length);
    for (void *member = json_object_iter(object); member != NULL; member = json_object_iter_next(object, member)) {
        if (json_object_iter_key_len(member) == length && memcmp(json_object_iter_key(member), name, length) == 0)
            return json_object_iter_value(member);
    }
    return NULL;
}

static inline int watchword_json_type(const json_t *value) { return (int)json_typeof(value); }

// A failed allocation aborts the program, as in Swift. Otherwise jansson would report a syntax error; without the id of the
// request, the broker could not reply to it, and the client would wait forever.
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

// Exists only in programs that link CWipingHeap.
extern int watchword_heap_wipes(void) __attribute__((weak));

// Makes jansson wipe every block that it frees, so that a password in a message leaves no copy in the heap. In a program whose
// free(3) wipes, wiping here too would add a seventh to the time of parsing.
static inline void watchword_json_use_wiping_allocator(void) {
    json_set_alloc_funcs(
        watchword_json_allocate, watchword_heap_wipes != NULL ? free : watchword_json_free_wiping);
}

#endif
