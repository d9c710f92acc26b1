#ifndef WATCHWORD_CSECRET_SHIM_H
#define WATCHWORD_CSECRET_SHIM_H

// libsecret always exports the functions that encrypt and decrypt secrets on the bus, but declares them only with these macros.
#define SECRET_WITH_UNSTABLE
#define SECRET_API_SUBJECT_TO_CHANGE
#include <libsecret/secret.h>

#include <gio/gio.h>

// The constructor of SecretService overwrites its properties, so that it always uses GIO's process-wide connection to the
// session bus. The constructor of this subclass sets them again, so that the caller's connection is used. The object loads no
// D-Bus properties and connects to no signals, because no cached state is needed.
static GObject *watchword_secret_service_construct(GType type, guint count, GObjectConstructParam *properties) {
    GObjectClass *parent = G_OBJECT_CLASS(g_type_class_peek(SECRET_TYPE_SERVICE));
    GObject *object = parent->constructor(type, count, properties);
    g_object_set(
        object, "g-bus-type", G_BUS_TYPE_NONE, "g-flags",
        G_DBUS_PROXY_FLAGS_DO_NOT_LOAD_PROPERTIES | G_DBUS_PROXY_FLAGS_DO_NOT_CONNECT_SIGNALS
            | G_DBUS_PROXY_FLAGS_DO_NOT_AUTO_START,
        NULL);
    return object;
}

static void watchword_secret_service_class_init(gpointer class, gpointer data) {
    (void)data;
    G_OBJECT_CLASS(class)->constructor = watchword_secret_service_construct;
}

static inline GType watchword_secret_service_type(void) {
    static gsize type = 0;
    if (g_once_init_enter(&type)) {
        GType made = g_type_register_static_simple(
            SECRET_TYPE_SERVICE, "WatchwordSecretService", sizeof(SecretServiceClass),
            watchword_secret_service_class_init, sizeof(SecretService), NULL, 0);
        g_once_init_leave(&type, made);
    }
    return type;
}

// Returns a client of the Secret Service on `connection`.
static inline SecretService *watchword_secret_service_new(
    GDBusConnection *connection, GCancellable *cancellable, GError **error) {
    return (SecretService *)g_initable_new(
        watchword_secret_service_type(), cancellable, error, "g-connection", connection, NULL);
}

static void watchword_shut_down_stream(GCancellable *cancellable, gpointer stream) {
    (void)cancellable;
    if (G_IS_SOCKET_CONNECTION(stream))
        g_socket_shutdown(g_socket_connection_get_socket(G_SOCKET_CONNECTION(stream)), TRUE, TRUE, NULL);
}

// Connects to a message bus. GIO ignores the cancellable while it waits for the bus's reply to Hello (25 seconds). Cancelling
// therefore also shuts down the socket, which ends that wait.
static inline GDBusConnection *watchword_bus_connect(const char *address, GCancellable *cancellable, GError **error) {
    GIOStream *stream = g_dbus_address_get_stream_sync(address, NULL, cancellable, error);
    if (stream == NULL) return NULL;
    gulong handler = g_cancellable_connect(
        cancellable, G_CALLBACK(watchword_shut_down_stream), g_object_ref(stream), g_object_unref);
    GDBusConnection *connection = g_dbus_connection_new_sync(
        // No GUID, not even that of the address: an assertion in GIO aborts a client that passes one.
        stream, NULL,
        G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_CLIENT | G_DBUS_CONNECTION_FLAGS_MESSAGE_BUS_CONNECTION, NULL,
        cancellable, error);
    g_cancellable_disconnect(cancellable, handler);
    g_object_unref(stream);
    return connection;
}

#endif
