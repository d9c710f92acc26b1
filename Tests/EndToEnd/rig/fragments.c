// Finds the occurrences of 8-byte `windows` (sorted, as numbers) in `data`. Writes at most `limit` of them to `places`, as pairs of
// offset and value, and returns their number.
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define BITS 20

static uint8_t seen[1 << (BITS - 3)];

static uint32_t slot(uint64_t value) { return (uint32_t)(value * 0x9E3779B97F4A7C15u >> (64 - BITS)); }

void prepare(const uint64_t *windows, size_t count) {
    memset(seen, 0, sizeof seen);
    for (size_t index = 0; index < count; index++) {
        uint32_t place = slot(windows[index]);
        seen[place >> 3] |= (uint8_t)(1 << (place & 7));
    }
}

size_t find(const uint8_t *data, size_t size, const uint64_t *windows, size_t count, uint64_t *places, size_t limit) {
    size_t found = 0;
    for (size_t offset = 0; offset + 8 <= size && found < limit; offset++) {
        uint64_t value;
        memcpy(&value, data + offset, 8);
        uint32_t place = slot(value);
        if (!(seen[place >> 3] >> (place & 7) & 1)) continue;
        for (size_t low = 0, high = count; low < high;) {
            size_t middle = (low + high) / 2;
            if (windows[middle] < value) {
                low = middle + 1;
            } else if (windows[middle] > value) {
                high = middle;
            } else {
                places[2 * found] = offset;
                places[2 * found + 1] = value;
                found++;
                break;
            }
        }
    }
    return found;
}
