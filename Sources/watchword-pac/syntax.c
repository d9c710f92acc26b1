#include "syntax.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

/// A position in a script. Reading beyond the end returns a zero character.
struct reader {
    const char *script;
    size_t length, at;
    int line;
    /// The last character that is not blank; `(` after a word that can precede a regular expression, `a` after another.
    char last;
};

static char look(const struct reader *reader, size_t ahead) {
    return reader->at + ahead < reader->length ? reader->script[reader->at + ahead] : '\0';
}

static void skip(struct reader *reader) {
    if (look(reader, 0) == '\n') reader->line++;
    reader->at++;
}

static bool is_word(char sign) { return isalnum((unsigned char)sign) || sign == '_' || sign == '$' || (signed char)sign < 0; }

static bool is_blank(char sign) { return isspace((unsigned char)sign); }

/// Skips a text in quotation marks, or a regular expression with its character classes.
static void skip_literal(struct reader *reader, char end) {
    bool in_class = false;
    for (skip(reader); reader->at < reader->length; skip(reader)) {
        const char sign = look(reader, 0);
        if (sign == '\\') skip(reader);
        else if (sign == '\n') return;
        else if (end == '/' && sign == '[') in_class = true;
        else if (end == '/' && sign == ']') in_class = false;
        else if (sign == end && !in_class) return skip(reader);
    }
}

static bool skip_comment(struct reader *reader) {
    if (look(reader, 0) != '/' || (look(reader, 1) != '/' && look(reader, 1) != '*')) return false;
    const bool is_line = look(reader, 1) == '/';
    for (reader->at += 2; reader->at < reader->length; skip(reader)) {
        if (is_line && look(reader, 0) == '\n') return true;
        if (!is_line && look(reader, 0) == '*' && look(reader, 1) == '/') return reader->at += 2, true;
    }
    return true;
}

/// Returns the next character that is not blank.
static char next_sign(struct reader reader) {
    while (is_blank(look(&reader, 0)) || skip_comment(&reader))
        if (is_blank(look(&reader, 0))) skip(&reader);
    return look(&reader, 0);
}

/// The parameters of a function, behind its name. Only the next characters are read, so that the time is not quadratic.
static const char *parameters(struct reader reader) {
    static const size_t longest = 4096;
    if (reader.length - reader.at > longest) reader.length = reader.at + longest;
    while (is_word(look(&reader, 0)) || is_blank(look(&reader, 0))) skip(&reader);
    if (look(&reader, 0) != '(') return NULL;
    for (; reader.at < reader.length && look(&reader, 0) != ')'; skip(&reader)) {
        if (look(&reader, 0) == '=') return "a default value of a parameter";
        if (look(&reader, 0) == '{' || look(&reader, 0) == '[') return "destructuring";
    }
    return NULL;
}

static const char *word(struct reader *reader) {
    static const char *const before_value[] = {"return", "typeof", "case", "in", "delete", "void", "throw", "new", "else", "do"};
    const char *start = reader->script + reader->at;
    const char before = reader->last;
    while (is_word(look(reader, 0))) skip(reader);
    const size_t length = (size_t)(reader->script + reader->at - start);
    reader->last = 'a';
    for (size_t index = 0; index < sizeof before_value / sizeof *before_value; index++)
        if (length == strlen(before_value[index]) && memcmp(start, before_value[index], length) == 0) reader->last = '(';
    if (before == '.') return NULL;
    const char next = next_sign(*reader);
    const bool is_binding = is_word(next) || next == '[' || next == '{';
#define IS(name) (length == sizeof name - 1 && memcmp(start, name, length) == 0)
    if (IS("let") && is_binding) return "let";
    if (IS("class") && (is_word(next) || next == '{')) return "class";
    if (IS("async") && is_word(next)) return "async";
    if ((IS("var") || IS("const")) && (next == '[' || next == '{')) return "destructuring";
    if (IS("of") && (before == 'a' || before == ']' || before == '}') && !strchr(";,)=.", next)) return "for ... of";
    if ((IS("import") || IS("export")) && (before == ';' || before == '}')) return "import or export";
    if (IS("function") && next == '*') return "a generator function";
    if (IS("function")) return parameters(*reader);
#undef IS
    return NULL;
}

static const char *sign(const struct reader *reader) {
    const char first = look(reader, 0), second = look(reader, 1), third = look(reader, 2);
    if (first == '`') return "a template literal";
    if (first == '=' && second == '>') return "an arrow function";
    if (first == '.' && second == '.' && third == '.') return "the operator ...";
    if (first == '?' && second == '?') return "the operator ??";
    if (first == '?' && second == '.' && !isdigit((unsigned char)third)) return "the operator ?.";
    return NULL;
}

const char *syntax_later_construct(const char *script, size_t length, int *line) {
    struct reader reader = {.script = script, .length = length, .line = 1, .last = ';'};
    while (reader.at < length) {
        const char first = look(&reader, 0);
        const char *found = sign(&reader);
        *line = reader.line;
        if (found) return found;
        if (is_blank(first)) skip(&reader);
        else if (skip_comment(&reader)) continue;
        else if (first == '"' || first == '\'') skip_literal(&reader, first), reader.last = 'a';
        else if (first == '/' && strchr("(,=:[!&|?{};+-*%<>~^", reader.last)) skip_literal(&reader, first), reader.last = 'a';
        else if (is_word(first)) {
            found = word(&reader);
            if (found) return found;
        } else {
            reader.last = first;
            skip(&reader);
        }
    }
    return NULL;
}
