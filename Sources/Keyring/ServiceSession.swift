internal import CSecret
internal import Glibc
internal import WatchwordCore
internal import WatchwordProtocol

/// A connection to the message bus, and on it an encrypted session with one instance of the Secret Service.
///
/// libsecret makes the session and the encryption. The calls are plain D-Bus: libsecret's own functions load every item there
/// is, leave the cancellable out when they load secrets, and wait without end for a prompt that does not complete.
///
/// Everything is addressed to the unique name of that instance: when it ends, calls fail, and are never started again by the
/// bus in an instance that does not know the session.
final class ServiceSession {
    private static let encryption = "dh-ietf1024-sha256-aes128-cbc-pkcs7"

    let connection: OpaquePointer
    let context: OpaquePointer
    /// The unique name of the service.
    let owner: String
    let signals: ItemSignals
    private let service: UnsafeMutablePointer<SecretService>

    /// - Parameter onSignal: runs when another program may have changed something.
    init(
        busAddress: String?, context: OpaquePointer, onSignal: @escaping @Sendable () -> Void, _ call: KeyringCall
    ) throws(KeyringFailure) {
        self.context = context
        connection = try Self.connect(busAddress, call)
        do throws(KeyringFailure) {
            owner = try Self.findService(connection, call)
            service = try Self.openSession(connection, call)
            signals = ItemSignals(connection, of: owner, onSignal: onSignal)
        } catch {
            Self.close(connection)
            throw error
        }
    }

    /// Ends the session. Not to be used any more.
    func close() {
        signals.end(connection)
        g_object_unref(service)
        Self.close(connection)
    }

    private static func close(_ connection: OpaquePointer) {
        // Explicitly: GIO holds references of its own for as long as signals are on their way.
        g_dbus_connection_close(connection, nil, nil, nil)
        g_object_unref(UnsafeMutableRawPointer(connection))
    }

    /// Whether the service is still the one with which the session was opened.
    func isAlive(_ call: KeyringCall) -> Bool {
        g_dbus_connection_is_closed(connection) == 0
            && (try? Self.ownerName(connection, call)) == owner
    }

    // MARK: Opening

    private static func connect(_ busAddress: String?, _ call: KeyringCall) throws(KeyringFailure) -> OpaquePointer {
        guard let address = busAddress ?? BusAddress.ofSession() else {
            throw KeyringFailure(.absent, "There is no session bus; is this a login session?")
        }
        var error: UnsafeMutablePointer<GError>?
        if let connection = watchword_bus_connect(address, call.cancellable, &error) { return connection }
        let failure = ServiceError(taking: error)
        if call.isOver { throw call.cause }
        throw KeyringFailure(.absent, "The session bus cannot be reached: \(failure.message)")
    }

    /// The unique name of the service, which the bus starts where it knows how.
    private static func findService(
        _ connection: OpaquePointer, _ call: KeyringCall
    ) throws(KeyringFailure) -> String {
        if let owner = try ownerName(connection, call) { return owner }
        _ = try askBus(connection, "StartServiceByName", [.name("org.freedesktop.secrets"), .number(0)], "(u)", call)
        if let owner = try ownerName(connection, call) { return owner }
        throw KeyringFailure(
            .absent, "No keyring runs on the session bus. Install and start one, for example gnome-keyring.")
    }

    private static func ownerName(
        _ connection: OpaquePointer, _ call: KeyringCall
    ) throws(KeyringFailure) -> String? {
        try askBus(connection, "GetNameOwner", [.name("org.freedesktop.secrets")], "(s)", call)?.children.first?.text
    }

    /// `nil` when the bus does not know the service, or cannot start it.
    private static func askBus(
        _ connection: OpaquePointer, _ method: String, _ arguments: [Variant], _ reply: String, _ call: KeyringCall
    ) throws(KeyringFailure) -> Variant? {
        let reply = send(
            connection, "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", method, arguments,
            reply: reply, call)
        // What has a name on D-Bus has been said by the bus; the rest are our own time-outs and lost connections.
        if case .failure(let error) = reply, !error.name.isEmpty { return nil }
        return try reply.orThrow(call)
    }

    private static func openSession(
        _ connection: OpaquePointer, _ call: KeyringCall
    ) throws(KeyringFailure) -> UnsafeMutablePointer<SecretService> {
        var error: UnsafeMutablePointer<GError>?
        guard let service = watchword_secret_service_new(connection, call.cancellable, &error) else {
            throw ServiceError(taking: error).failure(call)
        }
        guard secret_service_ensure_session_sync(service, call.cancellable, &error) != 0 else {
            g_object_unref(service)
            throw ServiceError(taking: error).failure(call)
        }
        // libsecret falls back to a session that does not encrypt.
        guard let algorithms = secret_service_get_session_algorithms(service),
            String(cString: algorithms) == encryption
        else {
            g_object_unref(service)
            throw .plainOnly
        }
        return service
    }

    // MARK: Calling

    /// Calls a method of the service.
    /// - Parameter reply: the D-Bus type of the whole reply, a tuple; another reply is an error.
    func send(
        _ path: String, _ interface: String, _ method: String, _ arguments: [Variant], reply: String,
        _ call: KeyringCall
    ) -> Result<Variant, ServiceError> {
        Self.send(connection, owner, path, interface, method, arguments, reply: reply, call)
    }

    private static func send(
        _ connection: OpaquePointer, _ name: String, _ path: String, _ interface: String, _ method: String,
        _ arguments: [Variant], reply: String, _ call: KeyringCall
    ) -> Result<Variant, ServiceError> {
        let type = g_variant_type_new(reply)
        defer { g_variant_type_free(type) }
        let parameters = Variant.tuple(arguments)
        var error: UnsafeMutablePointer<GError>?
        // No time limit of GDBus: the call has its own.
        let answer = withExtendedLifetime(parameters) {
            g_dbus_connection_call_sync(
                connection, name, path, interface, method, parameters.pointer, type,
                G_DBUS_CALL_FLAGS_NO_AUTO_START, gint.max, call.cancellable, &error)
        }
        return answer.map { .success(Variant(taking: $0)) } ?? .failure(ServiceError(taking: error))
    }

    // MARK: Secrets

    /// The session as the service knows it.
    var sessionPath: Variant? {
        secret_service_get_session_dbus_path(service).flatMap { Variant.path(String(cString: $0)) }
    }

    /// The secret in `value`, a `(oayays)` of this session; `nil` when it cannot be decrypted.
    func decode(_ value: Variant) -> Secret? {
        guard value.type == "(oayays)", let decoded = secret_service_decode_dbus_secret(service, value.pointer) else {
            return nil
        }
        // libsecret wipes its block when the value goes.
        defer { secret_value_unref(UnsafeMutableRawPointer(decoded)) }
        var count: gsize = 0
        let bytes = secret_value_get(decoded, &count)
        return Secret(copying: UnsafeRawBufferPointer(start: bytes, count: Int(count)))
    }

    /// `secret`, encrypted for this session, as a `(oayays)`.
    func encode(_ secret: Secret) throws(KeyringFailure) -> Variant {
        let encoded = secret.withUnsafeBytes { bytes -> OpaquePointer? in
            let start = bytes.baseAddress?.assumingMemoryBound(to: gchar.self)
            let value = secret_value_new(start, gssize(bytes.count), "text/plain")
            defer { secret_value_unref(UnsafeMutableRawPointer(value)) }
            return secret_service_encode_dbus_secret(service, value)
        }
        guard let encoded else { throw KeyringFailure(.refused, "The secret could not be encrypted for the keyring.") }
        return Variant(taking: encoded)
    }
}
