#include <TestHeap.h>

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

void watchword_test_free_wiping(void *block) {
    if (block == NULL) return;
    explicit_bzero(block, malloc_usable_size(block));
    free(block);
}

void *watchword_test_realloc_wiping(void *block, size_t size) {
    void *moved = malloc(size);
    if (block == NULL || moved == NULL) return moved;
    size_t old = malloc_usable_size(block);
    memcpy(moved, block, size < old ? size : old);
    watchword_test_free_wiping(block);
    return moved;
}
