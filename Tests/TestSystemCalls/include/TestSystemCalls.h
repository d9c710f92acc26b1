#ifndef WATCHWORD_TEST_SYSTEM_CALLS_H
#define WATCHWORD_TEST_SYSTEM_CALLS_H

#include "TestHeap.h"
#include "TestStack.h"

/// The name of the call with this index, out of those that a broker never makes; NULL behind the last.
const char *watchword_test_call_name(int index);

/// Makes the call with nothing but zeros, which does no harm. Returns 0, or an error number.
int watchword_test_call_error(int index);

#endif
