public import WatchwordProtocol

/// One item of the user's keyring.
public struct KeyringItem: Sendable, Equatable {
    /// The identifier of the item in the keyring: an object path of the Secret Service.
    public var id: String
    public var label: String
    /// The attributes by which items are found; readable while the item is locked. Numbers are in decimal.
    public var attributes: [ExactText: ExactText]
    /// `nil` while the item is locked, and if secrets were not requested.
    public var secret: Secret?
    public var isLocked: Bool

    public init(
        id: String, label: String, attributes: [ExactText: ExactText], secret: Secret?, isLocked: Bool
    ) {
        self.id = id
        self.label = label
        self.attributes = attributes
        self.secret = secret
        self.isLocked = isLocked
    }
}

/// The reason why a keyring operation failed.
public struct KeyringFailure: Error, Sendable, Equatable {
    public enum Kind: String, Sendable, CaseIterable {
        /// The session has no message bus, or the bus has no Secret Service.
        case absent
        /// The collection or the item is locked.
        case locked
        /// The user has closed a window of the keyring.
        case dismissed
        /// The service did not reply within the time limit of the call.
        case timedOut
        /// The service exited during the call.
        case lost
        /// The service transfers secrets only unencrypted on the bus, and is not used.
        case plainOnly
        /// The call was cancelled, or the keyring's thread has been shut down.
        case cancelled
        /// Any other error of the service.
        case refused
    }

    public var kind: Kind
    /// A message for people: the failure and what to do about it, without secrets.
    public var text: String

    public init(_ kind: Kind, _ text: String) {
        self.kind = kind
        self.text = text
    }
}

/// Persistent credentials in the keyring of the user's session.
///
/// No call blocks its caller. Each completion is called exactly once, on any thread, at the latest after the time limit
/// of the call. Calls are executed one after the other. Only `unlock`, `store`, and `remove` without an expected secret let the
/// keyring show a window.
public protocol KeyringPort: Sendable {
    typealias Completion<Value> = @Sendable (Result<Value, KeyringFailure>) -> Void

    /// Returns the items that have all attributes of at least one of `queries`, each item once, at most
    /// `Limits.keyringItems` items. With `withSecrets`, unlocked items include their secrets; locked items never do.
    func search(_ queries: [[ExactText: ExactText]], withSecrets: Bool, completion: @escaping Completion<[KeyringItem]>)

    /// Stores `secret` with `attributes` in the default collection, with the schema
    /// `org.gnome.keyring.NetworkPassword`. An item with the same attributes is replaced. Returns the item's id.
    func store(
        _ secret: Secret, attributes: [ExactText: ExactText], label: String, completion: @escaping Completion<String>)

    /// Removes the item if its secret is still `expected`, or unconditionally if `expected` is `nil`. Returns whether
    /// it was removed.
    func remove(_ id: String, ifSecretIs expected: Secret?, completion: @escaping Completion<Bool>)

    /// Replaces the attributes of the item.
    func setAttributes(_ attributes: [ExactText: ExactText], of id: String, completion: @escaping Completion<Void>)

    /// Unlocks the default collection. The keyring may prompt the user, for at most `limit`.
    func unlock(limit: Duration, completion: @escaping Completion<Void>)

    /// Reports, on any thread, each HTTP login that another program changes, if the keyring signals it. Reports begin
    /// with the first use of the keyring. If the service exits, reports begin again with the next use.
    func observe(_ report: @escaping @Sendable (KeyringChange) -> Void)

    /// Checks that the keyring is usable: present, encrypted on the bus, and its default collection unlocked.
    func check(completion: @escaping Completion<Void>)
}
