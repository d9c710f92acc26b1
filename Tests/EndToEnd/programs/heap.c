// Uses the allocator of the daemon (Sources/CWipingHeap) as programs do, and examines what it returns. Arguments: what to check.
#define _GNU_SOURCE
#include <CWipingHeap.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const char *what, size_t size) {
    printf("%s, %zu bytes\n", what, size);
    exit(1);
}

static uint64_t state = 1;
static size_t random_below(size_t bound) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(state >> 33) % bound;
}
static size_t random_size(void) { return random_below((size_t)1 << (3 + random_below(16))); }

static int is_filled(const unsigned char *block, size_t size, int value) {
    for (size_t index = 0; index < size; index++)
        if (block[index] != value) return 0;
    return 1;
}

/// Blocks of random sizes, filled with their number, so that an overlap is noticed.
static void check_contents(void) {
    enum { blocks = 400 };
    static unsigned char *block[blocks];
    static size_t size[blocks];
    for (int round = 0; round < 50000; round++) {
        int at = (int)random_below(blocks);
        int value = at % 251 + 1;
        if (block[at] && !is_filled(block[at], size[at], value)) fail("changed by others", size[at]);
        size_t wanted = random_size();
        switch (random_below(5)) {
        case 0: free(block[at]); block[at] = malloc(wanted); break;
        case 1:
            free(block[at]);
            block[at] = calloc(1 + wanted / 8, 8);
            if (!is_filled(block[at], 8 + wanted / 8 * 8, 0)) fail("calloc is not zero", wanted);
            break;
        case 2: {
            size_t kept = size[at] < wanted ? size[at] : wanted;
            int had = block[at] != NULL;
            block[at] = realloc(block[at], wanted ? wanted : 1);
            if (had && !is_filled(block[at], kept, value)) fail("realloc lost contents", wanted);
            break;
        }
        case 3: {
            void *aligned = NULL;
            if (posix_memalign(&aligned, 64, wanted) != 0 || (uintptr_t)aligned % 64 != 0) fail("not aligned", wanted);
            free(block[at]);
            block[at] = aligned;
            break;
        }
        default: free(block[at]); block[at] = NULL; wanted = 0;
        }
        if (block[at] && malloc_usable_size(block[at]) < wanted) fail("too small", wanted);
        if (block[at] && (uintptr_t)block[at] % 16 != 0) fail("not aligned", wanted);
        size[at] = wanted;
        if (block[at]) memset(block[at], value, wanted);
    }
    for (int at = 0; at < blocks; at++) free(block[at]);
}

/// Whether a new block contains a part of a secret. It is not empty: glibc leaves sizes and addresses in freed blocks.
static int has_secret(const unsigned char *block) {
    return memmem(block, malloc_usable_size((void *)block), "SSSS", 4) != NULL;
}

/// An allocation contains nothing of the secret in a block that was freed before.
static void check_wiping(void) {
    for (size_t size = 24; size < 100000; size += size / 7) {
        unsigned char *block = malloc(size);
        memset(block, 'S', malloc_usable_size(block));
        free(block);
        unsigned char *again = malloc(size);
        if (has_secret(again)) fail("not wiped", size);
        free(again);
        block = malloc(size);
        memset(block, 'S', malloc_usable_size(block));
        block = realloc(block, 2 * size);
        again = malloc(size);
        if (has_secret(again)) fail("not wiped by realloc", size);
        free(again);
        free(block);
    }
}

/// The kept memory is bounded.
static void check_bound(void) {
    enum { blocks = 4000 };
    static void *block[blocks];
    for (int round = 0; round < 5; round++) {
        for (int at = 0; at < blocks; at++) memset(block[at] = malloc(random_size()), 1, 1);
        for (int at = 0; at < blocks; at++) free(block[at]);
    }
    size_t kept = mallinfo2().uordblks;
    if (kept < 1 << 19) fail("keeps too little", kept);
    if (kept > 3 << 19) fail("keeps too much", kept);
}

/// Frees a block again that glibc has taken back.
static void free_returned(void) {
    void *volatile block[100];
    for (int at = 0; at < 100; at++) block[at] = malloc(2000);
    for (int at = 0; at < 100; at++) free(block[at]);
    free(block[50]);
}

static void *free_twice(void *unused) {
    (void)unused;
    void *volatile block = malloc(100);
    void *volatile other = malloc(100);
    free(block);
    free(other);
    free(block);
    return NULL;
}

/// Frees on this thread what another has allocated.
static void *free_all(void *blocks) {
    for (void **block = blocks; *block; block++) free(*block);
    return NULL;
}

static void check_threads(void) {
    pthread_t thread;
    for (int round = 0; round < 200; round++) {
        void *blocks[201] = {0};
        for (int at = 0; at < 200; at++) memset(blocks[at] = malloc(64), 7, 64);
        pthread_create(&thread, NULL, free_all, blocks);
        pthread_join(thread, NULL);
    }
}

int main(int count, char **arguments) {
    const char *what = count > 1 ? arguments[1] : "";
    if (!watchword_heap_wipes()) fail("frees without wiping", 64);
    watchword_heap_keep_blocks();
    if (!watchword_heap_wipes()) fail("keeps without wiping", 64);
    if (!strcmp(what, "contents")) check_contents();
    else if (!strcmp(what, "wiping")) check_wiping();
    else if (!strcmp(what, "bound")) check_bound();
    else if (!strcmp(what, "threads")) check_threads();
    else if (!strcmp(what, "twice")) free_twice(NULL);
    else if (!strcmp(what, "returned")) free_returned();
    else fail("nothing to check", 0);
    puts("good");
    return 0;
}
