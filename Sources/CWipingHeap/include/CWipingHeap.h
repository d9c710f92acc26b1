// Makes every library of the program wipe what it frees: see heap.c. A program that links this target has it.
#pragma once

/// Whether blocks of this program are wiped when they are freed: false where something else stands in for malloc(3).
int watchword_heap_wipes(void);
