#include "engine.h"

#include "functions.h"
#include "resolver.h"
#include "syntax.h"
#include <arpa/inet.h>
#include <duktape.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/// The current script; `NULL` before the first one, and after one that could not be loaded.
static duk_context *context;
static size_t used;

// MARK: Memory

// Each block is preceded by its size.
enum { HEADER = 16 };

static void *change(void *block, size_t size) {
    char *start = block ? (char *)block - HEADER : NULL;
    const size_t before = start ? *(size_t *)start : 0;
    if (size == 0) {
        used -= before;
        free(start);
        return NULL;
    }
    if (size > ENGINE_BYTES || used - before + size > ENGINE_BYTES) return NULL;
    char *next = realloc(start, size + HEADER);
    if (!next) return NULL;
    *(size_t *)next = size;
    used = used - before + size;
    return next + HEADER;
}

static void *allocate(void *data, duk_size_t size) { return change(NULL, size); }
static void *reallocate(void *data, void *block, duk_size_t size) { return change(block, size); }
static void release(void *data, void *block) { change(block, 0); }

static void give_up(void *data, const char *message) { _exit(1); }

// MARK: Native functions

static duk_ret_t resolve(duk_context *context) {
    char addresses[RESOLVER_BYTES];
    if (resolver_find(duk_to_string(context, 0), addresses)) duk_push_string(context, addresses);
    else duk_push_null(context);
    return 1;
}

static duk_ret_t own(duk_context *context) {
    char addresses[RESOLVER_BYTES];
    if (resolver_own(addresses)) duk_push_string(context, addresses);
    else duk_push_null(context);
    return 1;
}

static duk_ret_t bytes(duk_context *context) {
    const char *text = duk_to_string(context, 0);
    unsigned char address[sizeof(struct in6_addr)];
    size_t length = 0;
    if (inet_pton(AF_INET, text, address) == 1) length = 4;
    else if (inet_pton(AF_INET6, text, address) == 1) length = 16;
    char digits[2 * sizeof address + 1] = "";
    for (size_t index = 0; index < length; index++) snprintf(digits + 2 * index, 3, "%02x", address[index]);
    if (length) duk_push_string(context, digits);
    else duk_push_null(context);
    return 1;
}

// MARK: Texts

/// Writes a text as one line.
static void write_line(struct engine_text *text, bool is_error, const char *line) {
    text->is_error = is_error;
    size_t length = 0;
    for (; line[length] && length < sizeof text->bytes - 1; length++)
        text->bytes[length] = (unsigned char)line[length] < 0x20 || line[length] == 0x7F ? ' ' : line[length];
    text->bytes[length] = '\0';
}

/// A script that could not be loaded.
struct script {
    const char *text;
    size_t length;
};

/// The text that an error is written to, and the script with the error. There is no script for an error in a call.
struct failure {
    struct engine_text *text;
    const struct script *script;
};

/// Writes the error on top of the stack, with its line. Names the construct, if the script does not use ECMAScript 5. Runs
/// protected, because it may call functions of the script.
static duk_ret_t describe(duk_context *context, void *data) {
    const struct failure *failure = data;
    struct engine_text *text = failure->text;
    duk_int_t line = 0;
    if (duk_is_object(context, -1)) {
        duk_get_prop_string(context, -1, "lineNumber");
        line = duk_get_int(context, -1);
        duk_pop(context);
    }
    const bool is_syntax = duk_is_object(context, -1) && duk_get_error_code(context, -1) == DUK_ERR_SYNTAX_ERROR;
    const char *message = duk_safe_to_string(context, -1);
    char whole[ENGINE_TEXT_BYTES];
    int place = 0;
    const char *construct =
        is_syntax && failure->script ? syntax_later_construct(failure->script->text, failure->script->length, &place) : NULL;
    if (construct && (line == 0 || place <= line))
        snprintf(whole, sizeof whole, "line %d: %s is not supported; write ECMAScript 5", place, construct);
    else if (line > 0) snprintf(whole, sizeof whole, "line %d: %s", (int)line, message);
    else snprintf(whole, sizeof whole, "%s", message);
    write_line(text, true, whole);
    return 0;
}

static void write_error(struct engine_text *text, const struct script *script) {
    struct failure failure = {text, script};
    write_line(text, true, "unknown error");
    duk_safe_call(context, describe, &failure, 1, 1);
}

// MARK: Scripts

static duk_ret_t define(duk_context *context, void *data) {
    duk_eval_string(context, functions);
    duk_push_c_function(context, resolve, 1);
    duk_push_c_function(context, own, 0);
    duk_push_c_function(context, bytes, 1);
    duk_call(context, 3);
    return 0;
}

/// Pushes the function that chooses the proxies. Runs protected, because it may be a getter of the script.
static duk_ret_t get_function(duk_context *context, void *data) {
    if (!duk_get_global_string(context, "FindProxyForURL")) duk_get_global_string(context, "FindProxyForURLEx");
    if (duk_is_function(context, -1)) return 1;
    duk_push_string(context, "it does not define the function FindProxyForURL");
    return duk_throw(context);
}

/// Calls the function with its two arguments, and pushes its result.
static duk_ret_t call(duk_context *context, void *data) {
    const char *const *arguments = data;
    get_function(context, NULL);
    duk_push_string(context, arguments[0]);
    duk_push_string(context, arguments[1]);
    duk_call(context, 2);
    if (duk_is_string(context, -1)) return 1;
    duk_push_string(context, "FindProxyForURL returned no text");
    return duk_throw(context);
}

static void discard(void) {
    if (context) duk_destroy_heap(context);
    context = NULL;
}

void engine_load(const char *script, size_t length, struct engine_text *text) {
    discard();
    context = duk_create_heap(allocate, reallocate, release, NULL, give_up);
    if (!context) return write_line(text, true, "out of memory");
    bool is_loaded = duk_safe_call(context, define, NULL, 0, 1) == DUK_EXEC_SUCCESS;
    if (is_loaded) {
        duk_pop(context);
        is_loaded = duk_peval_lstring(context, script, length) == DUK_EXEC_SUCCESS
                    && duk_safe_call(context, get_function, NULL, 0, 1) == DUK_EXEC_SUCCESS;
    }
    if (is_loaded) return write_line(text, false, "");
    write_error(text, &(struct script){script, length});
    discard();
}

void engine_find(const char *url, const char *host, struct engine_text *text) {
    if (!context) return write_line(text, true, "no script is loaded");
    duk_set_top(context, 0);
    const char *arguments[] = {url, host};
    if (duk_safe_call(context, call, arguments, 0, 1) != DUK_EXEC_SUCCESS) return write_error(text, NULL);
    size_t length;
    const char *found = duk_get_lstring(context, -1, &length);
    // The last proxy of a text that is cut off would be another one.
    if (length >= sizeof text->bytes || memchr(found, '\0', length))
        return write_line(text, true, "FindProxyForURL returned more than 4095 bytes or a zero character");
    write_line(text, false, found);
}
