#include "CToml.h"

#include <algorithm>
#include <deque>
#include <string>
#include <tuple>
#include <vector>

#include "guard.h"

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#define TOML_MAX_NESTED_VALUES WATCHWORD_TOML_DEPTH
// The parser asserts some conditions before it checks them: "[:" would abort the process, or be undefined behaviour with
// NDEBUG. With neither assertions nor NDEBUG, the check that follows reports the error.
#undef NDEBUG
#define TOML_ASSERT(expression) static_cast<void>(0)
// For some characters with code points near the spaces, such as the first letter of "été = 1", unicode.h reaches
// TOML_UNREACHABLE, which is undefined behaviour. The correct result is false: they are not spaces.
#include <toml++/impl/forward_declarations.h>
#undef TOML_UNREACHABLE
#define TOML_UNREACHABLE return false
#include <toml++/impl/unicode.h>
#undef TOML_UNREACHABLE
#define TOML_UNREACHABLE __builtin_unreachable()
#include <toml++/toml.h>

namespace {

/// The limit for the total length of all paths: a long table name is copied for each of its keys.
constexpr size_t path_bytes_in_all = 16 << 20;

struct Document : watchword_toml_document {
    std::vector<watchword_toml_entry> list;
    /// The texts that the entries point to; a deque does not move its elements.
    std::deque<std::string> texts;
    std::deque<std::vector<watchword_toml_text>> arrays;
    std::deque<std::vector<int64_t>> numbers;
    size_t path_bytes = 0;

    Document() : watchword_toml_document{} {}

    watchword_toml_text store(std::string text, const toml::source_position &place) {
        texts.push_back(std::move(text));
        return {texts.back().data(), texts.back().size(), place.line, place.column};
    }

    void fail(std::string text, const toml::source_position &place) {
        list.clear();
        error = store(std::move(text), place);
    }

    void add(const toml::table &table, const std::string &prefix, size_t depth);
    void add(const std::string &path, const toml::node &node, const toml::source_position &place, size_t depth);
    watchword_toml_entry value(const toml::node &node);
    bool take_strings(const toml::array &array, watchword_toml_entry &entry);
    bool take_integers(const toml::array &array, watchword_toml_entry &entry);
};

bool is_bare(std::string_view part) {
    return !part.empty() && std::all_of(part.begin(), part.end(), [](char byte) {
        return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
               byte == '-' || byte == '_';
    });
}

/// Quotes a part of a key if necessary: otherwise "a.b", one part with a dot, would look like a.b.
std::string written(std::string_view part) {
    if (is_bare(part)) return std::string(part);
    std::string text = "\"";
    for (char byte : part) {
        if (byte == '"' || byte == '\\') text += '\\';
        text += byte;
    }
    return text + "\"";
}

watchword_toml_entry Document::value(const toml::node &node) {
    watchword_toml_entry entry{};
    entry.kind = WATCHWORD_TOML_OTHER;
    if (auto text = node.as_string()) {
        entry.kind = WATCHWORD_TOML_STRING;
        entry.string = store(text->get(), node.source().begin);
    } else if (auto integer = node.as_integer()) {
        entry.kind = WATCHWORD_TOML_INTEGER;
        entry.integer = integer->get();
    } else if (auto boolean = node.as_boolean()) {
        entry.kind = WATCHWORD_TOML_BOOLEAN;
        entry.boolean = boolean->get();
    } else if (auto real = node.as_floating_point()) {
        entry.kind = WATCHWORD_TOML_REAL;
        entry.real = real->get();
    } else if (node.is_table()) {
        entry.kind = WATCHWORD_TOML_TABLE;
    } else if (auto array = node.as_array()) {
        if (array->is_homogeneous<toml::table>()) entry.kind = WATCHWORD_TOML_TABLES;
        else if (!take_strings(*array, entry)) take_integers(*array, entry);
    }
    return entry;
}

bool Document::take_strings(const toml::array &array, watchword_toml_entry &entry) {
    std::vector<watchword_toml_text> strings;
    for (const auto &element : array) {
        if (!element.is_string()) return false;
        strings.push_back(store(element.as_string()->get(), element.source().begin));
    }
    arrays.push_back(std::move(strings));
    entry.kind = WATCHWORD_TOML_STRINGS;
    entry.strings = arrays.back().data();
    entry.string_count = arrays.back().size();
    return true;
}

bool Document::take_integers(const toml::array &array, watchword_toml_entry &entry) {
    std::vector<int64_t> integers;
    for (const auto &element : array) {
        if (!element.is_integer()) return false;
        integers.push_back(element.as_integer()->get());
    }
    numbers.push_back(std::move(integers));
    entry.kind = WATCHWORD_TOML_INTEGERS;
    entry.integers = numbers.back().data();
    entry.integer_count = numbers.back().size();
    return true;
}

void Document::add(const toml::table &table, const std::string &prefix, size_t depth) {
    for (const auto &[key, node] : table) {
        if (error.bytes) return;
        add(prefix + written(key.str()), node, key.source().begin, depth);
    }
}

void Document::add(
    const std::string &path, const toml::node &node, const toml::source_position &place, size_t depth) {
    path_bytes += path.size();
    if (path_bytes > path_bytes_in_all) return fail("the keys are too long", place);
    watchword_toml_entry entry = value(node);
    entry.path = store(path, place);
    entry.depth = depth;
    list.push_back(entry);
    if (auto table = node.as_table()) return add(*table, path + ".", depth + 1);
    if (entry.kind != WATCHWORD_TOML_TABLES) return;
    size_t index = 0;
    for (const auto &element : *node.as_array()) {
        if (error.bytes) return;
        add(path + "[" + std::to_string(index++) + "]", element, element.source().begin, depth + 1);
    }
}

void read(std::string_view text, Document &document) {
    if (text.size() > WATCHWORD_TOML_BYTES) return document.fail("the text is longer than 1 MiB", {1, 1});
    GuardFinding finding = guard(text);
    if (finding.problem) return document.fail(finding.problem, {finding.line, finding.column});
    toml::parse_result result = toml::parse(text);
    if (!result) return document.fail(std::string(result.error().description()), result.error().source().begin);
    document.add(result.table(), "", 1);
    std::sort(document.list.begin(), document.list.end(), [](const auto &left, const auto &right) {
        return std::tie(left.path.line, left.path.column) < std::tie(right.path.line, right.path.column);
    });
    document.entries = document.list.data();
    document.entry_count = document.list.size();
}

}  // namespace

const watchword_toml_document *watchword_toml_parse(const char *bytes, size_t length) {
    auto *document = new Document;
    read(length ? std::string_view(bytes, length) : std::string_view(), *document);
    return document;
}

void watchword_toml_free(const watchword_toml_document *document) { delete static_cast<const Document *>(document); }
