// Wrappers for functions that Swift cannot call: variadic functions, macros, packed structures.
#include <curl/curl.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

typedef size_t (*data_callback)(char *, size_t, size_t, void *);
static inline void set_text(CURL *easy, CURLoption option, const char *value) { curl_easy_setopt(easy, option, value); }
static inline void set_number(CURL *easy, CURLoption option, long value) { curl_easy_setopt(easy, option, value); }
static inline void set_pointer(CURL *easy, CURLoption option, void *value) { curl_easy_setopt(easy, option, value); }
static inline void set_callback(CURL *easy, CURLoption option, data_callback value) { curl_easy_setopt(easy, option, value); }
static inline void set_socket_callback(CURLM *multi, curl_socket_callback value) {
    curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, value);
}
static inline void set_timer_callback(CURLM *multi, curl_multi_timer_callback value) {
    curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, value);
}
static inline void set_connections(CURLM *multi, long to_one_host) {
    curl_multi_setopt(multi, CURLMOPT_MAX_HOST_CONNECTIONS, to_one_host);
}
static inline long status_of(CURL *easy) {
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    return status;
}
static inline void *private_of(CURL *easy) {
    char *pointer = 0;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &pointer);
    return pointer;
}
static inline int control(int epoll, int operation, int fd, uint32_t events, uint64_t key) {
    struct epoll_event event;
    event.events = events;
    event.data.u64 = key;
    return epoll_ctl(epoll, operation, fd, &event);
}
static inline int wait_for(int epoll, uint32_t *events, uint64_t *keys, int milliseconds) {
    struct epoll_event found[64];
    int count = epoll_wait(epoll, found, 64, milliseconds);
    for (int i = 0; i < count; i++) {
        events[i] = found[i].events;
        keys[i] = found[i].data.u64;
    }
    return count;
}
static inline int listen_at(const char *path) {
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    unlink(path);
    return bind(fd, (struct sockaddr *)&address, sizeof address) || listen(fd, 4096) ? -1 : fd;
}
static inline int accept_from(int listener) {
    int fd = accept(listener, 0, 0);
    return fd < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) ? -1 : fd;
}
static inline long long integer_of(json_t *value) { return json_integer_value(value); }
static inline void release(json_t *value) { json_decref(value); }
