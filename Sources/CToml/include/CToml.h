#ifndef WATCHWORD_CTOML_H
#define WATCHWORD_CTOML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// The size limit for a text, in bytes.
enum { WATCHWORD_TOML_BYTES = 1 << 20 };

/// The limit for the number of parts of a dotted key and for the depth of arrays and inline tables: the parser recurses for
/// each.
enum { WATCHWORD_TOML_DEPTH = 16 };

typedef enum watchword_toml_kind {
    WATCHWORD_TOML_STRING,
    WATCHWORD_TOML_INTEGER,
    WATCHWORD_TOML_BOOLEAN,
    WATCHWORD_TOML_REAL,
    /// An array that contains only strings, or is empty.
    WATCHWORD_TOML_STRINGS,
    /// A non-empty array that contains only integers.
    WATCHWORD_TOML_INTEGERS,
    WATCHWORD_TOML_TABLE,
    /// A non-empty array of tables. Each element is a table with the path `PATH[INDEX]`, and the depth of the array plus one.
    WATCHWORD_TOML_TABLES,
    /// Dates, times, and arrays of anything but strings.
    WATCHWORD_TOML_OTHER,
} watchword_toml_kind;

/// A string in UTF-8, which may contain NUL bytes, and its position in the file. Lines and columns count from 1.
typedef struct watchword_toml_text {
    const char *bytes;
    size_t length;
    uint32_t line, column;
} watchword_toml_text;

/// A key and its value. `kind` says which of the value members is valid.
typedef struct watchword_toml_entry {
    /// The dotted path, and the position of the key's last part. A part that is not a bare key is in quotation marks.
    watchword_toml_text path;
    /// The number of parts of the path.
    size_t depth;
    watchword_toml_kind kind;
    int64_t integer;
    double real;
    bool boolean;
    watchword_toml_text string;
    const watchword_toml_text *strings;
    size_t string_count;
    const int64_t *integers;
    size_t integer_count;
} watchword_toml_entry;

typedef struct watchword_toml_document {
    /// The entries in the order of the text.
    const watchword_toml_entry *entries;
    size_t entry_count;
    /// The syntax error and its position; `bytes` is NULL if the text is valid. After an error the list of entries is empty.
    watchword_toml_text error;
} watchword_toml_document;

/// Parses TOML 1.0. The caller frees the result, even one with an error, with `watchword_toml_free`.
const watchword_toml_document *watchword_toml_parse(const char *bytes, size_t length);

/// Frees a document and everything it points to.
void watchword_toml_free(const watchword_toml_document *document);

#ifdef __cplusplus
}
#endif

#endif
