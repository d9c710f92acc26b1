#ifndef WATCHWORD_CSECRET_SHIM_H
#define WATCHWORD_CSECRET_SHIM_H

// For the functions that encrypt and decrypt what goes over the bus: libsecret exports them in every version, but shows them
// only to who says so.
#define SECRET_WITH_UNSTABLE
#define SECRET_API_SUBJECT_TO_CHANGE
#include <libsecret/secret.h>

#include <gio/gio.h>

// g_initable_new and the casting macros are not visible to Swift.

// A Secret Service client on a connection of our own; libsecret's own constructors know the process-wide one only. `owner` is
// the unique name of the service on the bus. No properties are loaded and no signals subscribed: nothing has to be kept in step.
static inline SecretService *watchword_secret_service_new(
    GDBusConnection *connection, const char *owner, GCancellable *cancellable, GError **error) {
    return (SecretService *)g_initable_new(
        SECRET_TYPE_SERVICE, cancellable, error, "g-flags",
        G_DBUS_PROXY_FLAGS_DO_NOT_LOAD_PROPERTIES | G_DBUS_PROXY_FLAGS_DO_NOT_CONNECT_SIGNALS
            | G_DBUS_PROXY_FLAGS_DO_NOT_AUTO_START,
        "g-name", owner, "g-connection", connection, "g-object-path", "/org/freedesktop/secrets", "g-interface-name",
        "org.freedesktop.Secret.Service", NULL);
}

static void watchword_shut_down_stream(GCancellable *cancellable, gpointer stream) {
    (void)cancellable;
    if (G_IS_SOCKET_CONNECTION(stream))
        g_socket_shutdown(g_socket_connection_get_socket(G_SOCKET_CONNECTION(stream)), TRUE, TRUE, NULL);
}

// Connects to a message bus. GIO waits for the bus's answer to Hello whatever the cancellable says (25 seconds): here
// cancelling shuts the socket down, which ends that too.
static inline GDBusConnection *watchword_bus_connect(const char *address, GCancellable *cancellable, GError **error) {
    char *guid = NULL;
    GIOStream *stream = g_dbus_address_get_stream_sync(address, &guid, cancellable, error);
    if (stream == NULL) return NULL;
    gulong handler = g_cancellable_connect(
        cancellable, G_CALLBACK(watchword_shut_down_stream), g_object_ref(stream), g_object_unref);
    GDBusConnection *connection = g_dbus_connection_new_sync(
        stream, guid,
        G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_CLIENT | G_DBUS_CONNECTION_FLAGS_MESSAGE_BUS_CONNECTION, NULL,
        cancellable, error);
    g_cancellable_disconnect(cancellable, handler);
    g_object_unref(stream);
    g_free(guid);
    return connection;
}

#endif
