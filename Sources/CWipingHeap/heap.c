// This file replaces glibc's malloc(3), calloc(3), realloc(3) and free(3) for the whole program (see "Replacing malloc" in glibc's
// manual) with functions that wipe freed memory. The buffers of libcurl, jansson, OpenSSL, nghttp2, GSSAPI, GLib and Swift all
// contain passwords, and most of them cannot be accessed from outside.
//
// All blocks are glibc's. A thread can keep the blocks that it frees for its next allocations: glibc itself keeps only seven of each
// size, and none of more than 1 KiB, which costs the event loop 5 % of its time.

#include <CWipingHeap.h>

#ifdef __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_SANITIZER
#endif
#endif

#ifdef HAS_SANITIZER
// Sanitizers replace the allocator. Programs must start nevertheless, so this reports success.
int watchword_heap_wipes(void) { return 1; }
void watchword_heap_keep_blocks(void) {}
#else
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

extern void __libc_free(void *block);
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);

static void wipe(void *block, size_t size) {
    memset(block, 0, size);
    // Prevents the compiler from removing the memset before the block is freed.
    __asm__ volatile("" : : "r"(block) : "memory");
}

// Size classes: up to 1,032 bytes the sizes of glibc's blocks (24, 40, 56 and so on), above four for each power of two.

enum { small_classes = 65, classes = small_classes + 4 * 5 };
static const size_t largest_small = 1032, largest = 1 << 15;

/// The class for allocations of `size` bytes, which is rounded up to what a block of this class must hold.
static unsigned class_for(size_t *size) {
    if (*size <= largest_small) {
        unsigned class = *size <= 24 ? 1 : (unsigned)(*size + 7) / 16;
        *size = 16 * class + 8;
        return class;
    }
    unsigned power = 63 - (unsigned)__builtin_clzl(*size - 1);
    size_t quarter = (*size - 1) >> (power - 2);  // 4 to 7
    *size = (quarter + 1) << (power - 2);
    return small_classes + 4 * (power - 10) + (unsigned)quarter - 4;
}

/// The highest class whose allocations fit into a block of `usable` bytes.
static unsigned class_of(size_t usable) {
    if (usable <= largest_small) return (unsigned)(usable - 8) / 16;
    unsigned power = 63 - (unsigned)__builtin_clzl(usable);
    unsigned quarter = (unsigned)(usable >> (power - 2)) - 4;  // 0 to 3
    return small_classes + 4 * (power - 10) + quarter - 1;
}

/// The start of a kept block. The rest of the block is zero.
struct block {
    uintptr_t next;  // Mixed with the block's address, so that an overflow cannot choose what malloc returns
    uintptr_t mark;  // Tells a second free
};

static __thread struct {
    uintptr_t mark;  // 0 if this thread keeps no blocks
    struct list {
        struct block *first;
        unsigned count, limit;
    } lists[classes + 1];
} kept __attribute__((tls_model("local-exec")));

void watchword_heap_keep_blocks(void) {
    enum { bytes = 16384, least = 2, most = 64 };
    for (size_t size = 24; size <= largest; size++) {
        unsigned class = class_for(&size);
        size_t fitting = bytes / size;
        kept.lists[class].limit = fitting < least ? least : fitting > most ? most : (unsigned)fitting;
    }
    kept.mark = (uintptr_t)&kept ^ (uintptr_t)0x9e3779b97f4a7c15;
}

static struct block *next(const struct block *block, uintptr_t next) { return (struct block *)(next ^ ((uintptr_t)block >> 12)); }

/// The list for blocks of `usable` bytes; one without blocks, whose limit is zero, for large blocks and for threads that keep none.
static struct list *list_of(size_t usable) {
    return &kept.lists[usable < largest + largest / 4 ? class_of(usable) : classes];
}

static int keep(void *freed, struct list *list) {
    if (list->count >= list->limit) return 0;
    struct block *block = freed;
    *block = (struct block){(uintptr_t)next(block, (uintptr_t)list->first), kept.mark};
    list->first = block;
    list->count++;
    return 1;
}

static void *take_from(struct list *list) {
    struct block *block = list->first;
    if (block == NULL) return NULL;
    list->first = next(block, block->next);
    list->count--;
    *block = (struct block){0};
    return block;
}

/// A block of this class, or of the next, because glibc's blocks can be 16 bytes larger than requested.
static void *take(unsigned class) {
    void *block = take_from(&kept.lists[class]);
    return block != NULL ? block : take_from(&kept.lists[class + 1]);
}

static void stop_if_kept(const void *freed, const struct list *list) {
    for (const struct block *block = list->first; block != NULL; block = next(block, block->next))
        if (block == freed) abort();
}

EXPORTED void *malloc(size_t size) {
    if (kept.mark == 0 || size > largest) return __libc_malloc(size);
    void *block = take(class_for(&size));
    return block != NULL ? block : __libc_malloc(size);
}

EXPORTED void *calloc(size_t count, size_t size) {
    size_t bytes;
    if (kept.mark == 0 || __builtin_mul_overflow(count, size, &bytes) || bytes > largest) return __libc_calloc(count, size);
    void *block = take(class_for(&bytes));
    return block != NULL ? block : __libc_calloc(1, bytes);
}

EXPORTED void free(void *block) {
    if (block == NULL) return;
    size_t usable = malloc_usable_size(block);
    // Not a block, or one that glibc has already taken back: glibc ends the process.
    int is_block = usable >= 24 && (uintptr_t)block % 16 == 0;
    if (!is_block) {
        __libc_free(block);
        return;
    }
    struct list *list = list_of(usable);
    if (kept.mark != 0 && ((struct block *)block)->mark == kept.mark) stop_if_kept(block, list);
    wipe(block, usable);  // guard: heap-wipe
    if (keep(block, list)) return;
    // This preserves errno (free(3) does so since glibc 2.33).
    __libc_free(block);
}

EXPORTED void *realloc(void *block, size_t size) {
    if (block == NULL) return malloc(size);
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
    void *grown = malloc(size);
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
