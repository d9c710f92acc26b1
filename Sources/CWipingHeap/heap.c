// free(3) and realloc(3) of the whole program, in place of glibc's (which allows that: "Replacing malloc" in its manual): what
// is given back is wiped first. libcurl and jansson take allocators; OpenSSL's, nghttp2's, GSSAPI's, GLib's and Swift's memory
// has passwords in it as well, and their buffers are beyond our reach.
//
// glibc's own allocator does all the rest.

#include <CWipingHeap.h>

#if defined(__has_feature) && (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
// A sanitizer has an allocator of its own.
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
    // So that the compiler does not take the memset for idle: the block is about to be freed.
    __asm__ volatile("" : : "r"(block) : "memory");
}

__attribute__((visibility("default"))) void free(void *block) {
    if (block == NULL) return;
    // errno stays as it is (since glibc 2.33).
    wipe(block, malloc_usable_size(block));
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
        // glibc may split the block, and give away what is behind.
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
    // Read after the free, and meant so: the allocator writes its lists at the start of a block only.
    return block[40] == 0;
}
#endif
