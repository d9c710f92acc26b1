#ifndef WATCHWORD_TEST_HEAP_H
#define WATCHWORD_TEST_HEAP_H

#include <stddef.h>

/// free(3) and realloc(3) that wipe what they free, as those of the broker do.
void watchword_test_free_wiping(void *block);
void *watchword_test_realloc_wiping(void *block, size_t size);

#endif
