#ifndef WATCHWORD_CPLATFORM_H
#define WATCHWORD_CPLATFORM_H

#include <stddef.h>

/// Overwrites `length` bytes at `block` in a way that the compiler may not remove.
void watchword_wipe(void *block, size_t length);

#endif
