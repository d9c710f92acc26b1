public import WatchwordProtocol

/// One item of the user's keyring, as it lies there.
public struct KeyringItem: Sendable, Equatable {
    /// The keyring's own name for it; an object path of the Secret Service.
    public var id: String
    public var label: String
    /// Readable without a password: what the item is looked up by. Numbers are in decimal digits.
    public var attributes: [ExactText: ExactText]
    /// `nil` while the item is locked, and where secrets were not asked for.
    public var secret: Secret?
    public var isLocked: Bool
    /// Seconds since 1970; 0 where the keyring does not say.
    public var created: UInt64

    public init(
        id: String, label: String, attributes: [ExactText: ExactText], secret: Secret?, isLocked: Bool, created: UInt64
    ) {
        self.id = id
        self.label = label
        self.attributes = attributes
        self.secret = secret
        self.isLocked = isLocked
        self.created = created
    }
}

/// Why the keyring did not do what it was asked for.
public struct KeyringFailure: Error, Sendable, Equatable {
    public enum Kind: String, Sendable, CaseIterable {
        /// No message bus, or no Secret Service on it.
        case absent
        /// What is needed is locked.
        case locked
        /// The user has closed the keyring's own window.
        case dismissed
        /// No answer within the limit of the call.
        case timedOut
        /// The service ended in the middle of the call.
        case lost
        /// The service takes and gives secrets readable on the bus only; it is not used.
        case plainOnly
        /// The call was cancelled, or the keyring's thread has been shut down.
        case cancelled
        /// Any other error of the service.
        case refused
    }

    public var kind: Kind
    /// What happened and what to do about it; without any secret.
    public var text: String

    public init(_ kind: Kind, _ text: String) {
        self.kind = kind
        self.text = text
    }
}

/// Credentials at rest, in the keyring of the user's session.
///
/// No call blocks its caller. Each completion is called exactly once, on any thread, at the latest when the limit of the call
/// has passed. Calls are carried out one after the other. Nothing but `unlock` and `store` lets the keyring show a window.
public protocol KeyringPort: Sendable {
    typealias Completion<Value> = @Sendable (Result<Value, KeyringFailure>) -> Void

    /// All items that carry every attribute of at least one of `queries`, each item once, at most `Limits.keyringItems`.
    /// Secrets of unlocked items come along when `withSecrets` says so. Locked items are listed without theirs.
    func search(_ queries: [[ExactText: ExactText]], withSecrets: Bool, completion: @escaping Completion<[KeyringItem]>)

    /// Puts `secret` under `attributes` into the default collection with the schema
    /// `org.gnome.keyring.NetworkPassword`; an item with the same attributes is replaced. Gives the item's id.
    func store(
        _ secret: Secret, attributes: [ExactText: ExactText], label: String, completion: @escaping Completion<String>)

    /// Removes the item, if its secret is still `expected`, or whatever it is where that is `nil`. Gives whether it was removed.
    func remove(_ id: String, ifSecretIs expected: Secret?, completion: @escaping Completion<Bool>)

    /// Replaces the attributes of the item.
    func setAttributes(_ attributes: [ExactText: ExactText], of id: String, completion: @escaping Completion<Void>)

    /// Unlocks the default collection; the keyring may ask the user, for at most `limit`.
    func unlock(limit: Duration, completion: @escaping Completion<Void>)

    /// Reports each login for HTTP that another program changes from now on, as far as the keyring says so; from the first use
    /// of the keyring on, and from the next use on after its service has ended. On any thread.
    func observe(_ report: @escaping @Sendable (KeyringChange) -> Void)

    /// Whether the keyring can be used now: success means present, encrypted on the bus, and the default collection unlocked.
    func check(completion: @escaping Completion<Void>)
}
