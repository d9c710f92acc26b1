#ifndef WATCHWORD_CCURL_SHIM_H
#define WATCHWORD_CCURL_SHIM_H

#include <curl/curl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

// Swift cannot call the variadic setters and getters of libcurl: these wrappers take one argument type each.

// Swift does not import macros with casts.
static const long watchword_curl_pause_writing = CURL_WRITEFUNC_PAUSE;
static const long watchword_curl_pause_reading = CURL_READFUNC_PAUSE;
static const long watchword_curl_abort_reading = CURL_READFUNC_ABORT;

static inline CURLcode watchword_curl_easy_set_long(CURL *easy, CURLoption option, long value) {
    return curl_easy_setopt(easy, option, value);
}

static inline CURLcode watchword_curl_easy_set_offset(CURL *easy, CURLoption option, curl_off_t value) {
    return curl_easy_setopt(easy, option, value);
}

static inline CURLcode watchword_curl_easy_set_string(CURL *easy, CURLoption option, const char *value) {
    return curl_easy_setopt(easy, option, value);
}

static inline CURLcode watchword_curl_easy_set_pointer(CURL *easy, CURLoption option, void *value) {
    return curl_easy_setopt(easy, option, value);
}

static inline CURLcode watchword_curl_easy_set_list(CURL *easy, CURLoption option, struct curl_slist *value) {
    return curl_easy_setopt(easy, option, value);
}

typedef size_t (*watchword_curl_data_function)(char *bytes, size_t size, size_t count, void *user);

static inline CURLcode watchword_curl_easy_set_data_function(
    CURL *easy, CURLoption option, watchword_curl_data_function value) {
    return curl_easy_setopt(easy, option, value);
}

// libcurl calls `function` with the OpenSSL context of every new connection, before the handshake.
static inline CURLcode watchword_curl_easy_set_context_function(CURL *easy, curl_ssl_ctx_callback function) {
    return curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, function);
}

// libcurl calls `function` to rewind the request's body to its start.
static inline CURLcode watchword_curl_easy_set_seek_function(CURL *easy, curl_seek_callback function, void *user) {
    CURLcode code = curl_easy_setopt(easy, CURLOPT_SEEKDATA, user);
    return code != CURLE_OK ? code : curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, function);
}

// libcurl calls `function` repeatedly during the transfer, and aborts the transfer if the result is not 0.
static inline CURLcode watchword_curl_easy_set_progress_function(
    CURL *easy, curl_xferinfo_callback function, void *user) {
    CURLcode code = curl_easy_setopt(easy, CURLOPT_XFERINFODATA, user);
    if (code == CURLE_OK) code = curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, function);
    return code != CURLE_OK ? code : curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
}

// Returns OpenSSL's `SSL *` of the connection in use; NULL without TLS. Valid only in a callback of the transfer.
static inline void *watchword_curl_easy_get_ssl(CURL *easy) {
    struct curl_tlssessioninfo *session = NULL;
    if (curl_easy_getinfo(easy, CURLINFO_TLS_SSL_PTR, &session) != CURLE_OK || session == NULL) return NULL;
    return session->backend == CURLSSLBACKEND_OPENSSL ? session->internals : NULL;
}

static inline CURLcode watchword_curl_easy_get_long(CURL *easy, CURLINFO info, long *value) {
    return curl_easy_getinfo(easy, info, value);
}

static inline CURLcode watchword_curl_easy_get_offset(CURL *easy, CURLINFO info, curl_off_t *value) {
    return curl_easy_getinfo(easy, info, value);
}

static inline CURLcode watchword_curl_easy_get_pointer(CURL *easy, CURLINFO info, void **value) {
    return curl_easy_getinfo(easy, info, value);
}

// Returns the socket of the last transfer, or -1. It is closed when the handle is removed from its multi handle.
static inline curl_socket_t watchword_curl_easy_get_socket(CURL *easy) {
    curl_socket_t socket = CURL_SOCKET_BAD;
    return curl_easy_getinfo(easy, CURLINFO_ACTIVESOCKET, &socket) == CURLE_OK ? socket : CURL_SOCKET_BAD;
}

static inline CURLMcode watchword_curl_multi_set_long(CURLM *multi, CURLMoption option, long value) {
    return curl_multi_setopt(multi, option, value);
}

// libcurl calls `function` with the sockets to watch for `curl_multi_socket_action`.
static inline CURLMcode watchword_curl_multi_set_socket_function(
    CURLM *multi, curl_socket_callback function, void *user) {
    CURLMcode code = curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, user);
    return code != CURLM_OK ? code : curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, function);
}

// libcurl calls `function` with the number of milliseconds after which to call `curl_multi_socket_action`; -1 cancels the
// timer.
static inline CURLMcode watchword_curl_multi_set_timer_function(
    CURLM *multi, curl_multi_timer_callback function, void *user) {
    CURLMcode code = curl_multi_setopt(multi, CURLMOPT_TIMERDATA, user);
    return code != CURLM_OK ? code : curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, function);
}

// Before each connection libcurl calls `function` with the address; `function` opens the socket, or refuses.
static inline CURLcode watchword_curl_easy_set_socket_function(CURL *easy, curl_opensocket_callback function) {
    return curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, function);
}

// Copies the address in network order, and returns its length in bytes: 4, 16, or 0 for another family.
static inline size_t watchword_curl_address(const struct curl_sockaddr *address, unsigned char *bytes) {
    if (address->family == AF_INET && address->addrlen >= sizeof(struct sockaddr_in)) {
        memcpy(bytes, &((const struct sockaddr_in *)(const void *)&address->addr)->sin_addr, 4);
        return 4;
    }
    if (address->family == AF_INET6 && address->addrlen >= sizeof(struct sockaddr_in6)) {
        memcpy(bytes, &((const struct sockaddr_in6 *)(const void *)&address->addr)->sin6_addr, 16);
        return 16;
    }
    return 0;
}

// Returns the port of an IPv4 or IPv6 address.
static inline int watchword_curl_port(const struct curl_sockaddr *address) {
    return ntohs(((const struct sockaddr_in *)(const void *)&address->addr)->sin_port);
}

// Before each request libcurl calls `function` with the addresses of the connection, new or reused; `function` may abort.
static inline CURLcode watchword_curl_easy_set_request_function(CURL *easy, curl_prereq_callback function) {
    return curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, function);
}

// libcurl calls `function` in place of close(2) for the sockets of a connection.
static inline CURLcode watchword_curl_easy_set_closing_function(CURL *easy, curl_closesocket_callback function) {
    return curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, function);
}

// libcurl calls `function` with its reports and the bytes it receives and sends, while CURLOPT_VERBOSE is set.
static inline CURLcode watchword_curl_easy_set_report_function(CURL *easy, curl_debug_callback function) {
    return curl_easy_setopt(easy, CURLOPT_DEBUGFUNCTION, function);
}

// Opens a socket with close-on-exec, which libcurl 7.88 does not set.
static inline curl_socket_t watchword_curl_socket(const struct curl_sockaddr *address) {
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

// Swift does not import macros with casts.
static const long watchword_curl_auth_ntlm = (long)CURLAUTH_NTLM;
static const long watchword_curl_auth_basic = (long)CURLAUTH_BASIC;

// Returns the result of a finished transfer; Swift cannot access the message's union in a portable way.
static inline CURLcode watchword_curl_message_result(const CURLMsg *message) { return message->data.result; }

#endif
