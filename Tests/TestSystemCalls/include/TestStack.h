#ifndef WATCHWORD_TEST_STACK_H
#define WATCHWORD_TEST_STACK_H

#include <stdint.h>

/// Leaves 1024 bytes of `pattern` on the stack, some 32 KiB below the caller. Returns where.
uintptr_t watchword_test_leave_on_stack(uint8_t pattern);

/// How many of the 1024 bytes at `place` are `pattern`.
int watchword_test_count_on_stack(uintptr_t place, uint8_t pattern);

#endif
