#ifndef WATCHWORD_CTOML_H
#define WATCHWORD_CTOML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// The longest text that is parsed.
enum { WATCHWORD_TOML_BYTES = 1 << 20 };

/// Parts of one dotted key, and arrays and inline tables inside each other: the parser calls itself for each.
enum { WATCHWORD_TOML_DEPTH = 16 };

typedef enum watchword_toml_kind {
    WATCHWORD_TOML_STRING,
    WATCHWORD_TOML_INTEGER,
    WATCHWORD_TOML_BOOLEAN,
    WATCHWORD_TOML_REAL,
    /// An array of strings and nothing else; an empty one too.
    WATCHWORD_TOML_STRINGS,
    WATCHWORD_TOML_TABLE,
    /// Dates, times, and arrays of anything but strings.
    WATCHWORD_TOML_OTHER,
} watchword_toml_kind;

/// UTF-8, which may hold NUL bytes, and where it stands in the text. Lines and columns count from 1.
typedef struct watchword_toml_text {
    const char *bytes;
    size_t length;
    uint32_t line, column;
} watchword_toml_text;

/// One key and its value. Which of the values counts, `kind` says.
typedef struct watchword_toml_entry {
    /// The whole path with dots in between, and the place of the key's last part. A part that is not a bare key is in quotation marks.
    watchword_toml_text path;
    /// Parts of the path.
    size_t depth;
    watchword_toml_kind kind;
    int64_t integer;
    double real;
    bool boolean;
    watchword_toml_text string;
    const watchword_toml_text *strings;
    size_t string_count;
} watchword_toml_entry;

typedef struct watchword_toml_document {
    /// In the order of the text.
    const watchword_toml_entry *entries;
    size_t entry_count;
    /// Why the text is not TOML, and where; then there are no entries. `bytes` is NULL when there is no error.
    watchword_toml_text error;
} watchword_toml_document;

/// Parses TOML 1.0. Every result, also one with an error, goes to `watchword_toml_free`.
const watchword_toml_document *watchword_toml_parse(const char *bytes, size_t length);

/// Frees a document and all that it points to.
void watchword_toml_free(const watchword_toml_document *document);

#ifdef __cplusplus
}
#endif

#endif
