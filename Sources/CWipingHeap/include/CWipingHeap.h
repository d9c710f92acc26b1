// Linking this target makes all code of a program wipe the memory that it frees; see heap.c.
#pragma once

/// Whether freed memory of this program is wiped: false if another library replaces malloc(3).
int watchword_heap_wipes(void);

/// Makes the calling thread keep up to 1.5 MiB of freed, wiped blocks for its next allocations. For a thread that lives as long as the
/// program.
void watchword_heap_keep_blocks(void);
