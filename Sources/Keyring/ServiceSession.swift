internal import CSecret
internal import Glibc
internal import WatchwordCore
internal import WatchwordProtocol

/// A connection to the message bus with an encrypted session to one instance of the Secret Service.
///
/// libsecret opens the session and encrypts. The calls are plain D-Bus: libsecret's own functions load all existing items,
/// ignore the cancellable when they load secrets, and wait forever for a prompt that does not complete.
///
/// All calls are addressed to the unique name of that instance. If it exits, they fail; the bus does not start another
/// instance, which would not know the session.
final class ServiceSession {
    private static let encryption = "dh-ietf1024-sha256-aes128-cbc-pkcs7"

    let connection: OpaquePointer
    let context: OpaquePointer
    /// The unique name of the service.
    let owner: String
    let signals: ItemSignals
    private let service: UnsafeMutablePointer<SecretService>

    /// - Parameter onSignal: runs when another program may have changed an item.
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

    /// Ends the session. It must not be used afterwards.
    func close() {
        signals.end(connection)
        g_object_unref(service)
        Self.close(connection)
    }

    private static func close(_ connection: OpaquePointer) {
        // Releasing the connection is not enough: GIO holds references of its own until all signals are delivered.
        g_dbus_connection_close(connection, nil, nil, nil)
        g_object_unref(UnsafeMutableRawPointer(connection))
    }

    /// Whether the service is still the instance with which the session was opened.
    func isAlive(_ call: KeyringCall) -> Bool {
        g_dbus_connection_is_closed(connection) == 0
            && (try? Self.ownerName(connection, call)) == owner
    }

    // MARK: Opening

    private static func connect(_ busAddress: String?, _ call: KeyringCall) throws(KeyringFailure) -> OpaquePointer {
        guard let address = busAddress ?? BusAddress.ofSession() else {
            throw KeyringFailure(.absent, "no session bus; is this a login session?")
        }
        var error: UnsafeMutablePointer<GError>?
        if let connection = watchword_bus_connect(address, call.cancellable, &error) { return connection }
        let failure = ServiceError(taking: error)
        if call.isOver { throw call.cause }
        throw KeyringFailure(.absent, "cannot connect to the session bus: \(failure.message)")
    }

    /// Returns the unique name of the service. The bus starts the service if necessary and possible.
    private static func findService(
        _ connection: OpaquePointer, _ call: KeyringCall
    ) throws(KeyringFailure) -> String {
        if let owner = try ownerName(connection, call) { return owner }
        _ = try askBus(connection, "StartServiceByName", [.name("org.freedesktop.secrets"), .number(0)], "(u)", call)
        if let owner = try ownerName(connection, call) { return owner }
        throw KeyringFailure(
            .absent, "no keyring on the session bus; install and start one, for example gnome-keyring")
    }

    private static func ownerName(
        _ connection: OpaquePointer, _ call: KeyringCall
    ) throws(KeyringFailure) -> String? {
        try askBus(connection, "GetNameOwner", [.name("org.freedesktop.secrets")], "(s)", call)?.children.first?.text
    }

    /// Calls a method of the bus. Returns `nil` if the bus does not know the service or cannot start it.
    private static func askBus(
        _ connection: OpaquePointer, _ method: String, _ arguments: [Variant], _ reply: String, _ call: KeyringCall
    ) throws(KeyringFailure) -> Variant? {
        let reply = send(
            connection, "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", method, arguments,
            reply: reply, call)
        // An error with a D-Bus name comes from the bus; the others are local: timeouts and lost connections.
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
        // KWallet refuses a public key that begins with a zero, which libsecret omits. Each attempt makes a new key.
        var attempts = 3
        while secret_service_ensure_session_sync(service, call.cancellable, &error) == 0 {
            let refusal = ServiceError(taking: error)
            error = nil
            attempts -= 1
            if attempts == 0 || !refusal.message.contains("public key size") {
                g_object_unref(service)
                throw refusal.failure(call)
            }
        }
        // libsecret falls back to an unencrypted session.
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
    /// - Parameter reply: the expected D-Bus type of the reply, a tuple; any other reply is an error.
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
        // Without a GDBus timeout, because the call has its own deadline.
        let answer = withExtendedLifetime(parameters) {
            g_dbus_connection_call_sync(
                connection, name, path, interface, method, parameters.pointer, type,
                G_DBUS_CALL_FLAGS_NO_AUTO_START, gint.max, call.cancellable, &error)
        }
        return answer.map { .success(Variant(taking: $0)) } ?? .failure(ServiceError(taking: error))
    }

    // MARK: Secrets

    /// The object path of the session.
    var sessionPath: Variant? {
        secret_service_get_session_dbus_path(service).flatMap { Variant.path(String(cString: $0)) }
    }

    /// Returns the secret in `value`, a `(oayays)` of this session; `nil` if it cannot be decrypted.
    func decode(_ value: Variant) -> Secret? {
        guard value.type == "(oayays)", let decoded = secret_service_decode_dbus_secret(service, value.pointer) else {
            return nil
        }
        // libsecret wipes its memory when the value is freed.
        defer { secret_value_unref(UnsafeMutableRawPointer(decoded)) }
        var count: gsize = 0
        let bytes = secret_value_get(decoded, &count)
        return Secret(copying: UnsafeRawBufferPointer(start: bytes, count: Int(count)))
    }

    /// Returns `secret`, encrypted for this session, as a `(oayays)`.
    func encode(_ secret: Secret) throws(KeyringFailure) -> Variant {
        let encoded = secret.withUnsafeBytes { bytes -> OpaquePointer? in
            let start = bytes.baseAddress?.assumingMemoryBound(to: gchar.self)
            let value = secret_value_new(start, gssize(bytes.count), "text/plain")
            defer { secret_value_unref(UnsafeMutableRawPointer(value)) }
            return secret_service_encode_dbus_secret(service, value)
        }
        guard let encoded else { throw KeyringFailure(.refused, "cannot encrypt the secret for the keyring") }
        return Variant(taking: encoded)
    }
}
