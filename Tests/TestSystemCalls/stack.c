#include <TestStack.h>

#include <stddef.h>

enum { DEPTH = 32 << 10, COUNT = 1024 };

__attribute__((noinline)) uintptr_t watchword_test_leave_on_stack(uint8_t pattern) {
    volatile uint8_t area[DEPTH];
    for (size_t index = 0; index < COUNT; index++) area[index] = pattern;
    // Indirectly, because the compiler warns of the address of a local variable, which is intended here.
    volatile uintptr_t place = (uintptr_t)area;
    return place;
}

__attribute__((noinline)) int watchword_test_count_on_stack(uintptr_t place, uint8_t pattern) {
    const volatile uint8_t *area = (const volatile uint8_t *)place;
    int count = 0;
    for (size_t index = 0; index < COUNT; index++) count += area[index] == pattern;
    return count;
}
