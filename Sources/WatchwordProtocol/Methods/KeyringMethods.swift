public import JSONText

/// The state of the keyring as known to the broker.
public enum KeyringDescription: Sendable, Equatable {
    case unknown, usable
    case locked(reason: String)
    case unavailable(kind: String, reason: String)

    public var json: JSON {
        switch self {
        case .unknown: ["state": "unknown"]
        case .usable: ["state": "usable"]
        case .locked(let reason): ["state": "locked", "kind": "locked", "reason": .string(reason)]
        case .unavailable(let kind, let reason):
            ["state": "unavailable", "kind": .string(kind), "reason": .string(reason)]
        }
    }
}

/// `keyring/status`: queries the state of the keyring.
public struct KeyringStatus: ParameterlessMethod {
    public static let name = "keyring/status"
    public init() {}
    public static func json(_ keyring: KeyringDescription) -> JSON { keyring.json }
}

/// `keyring/unlock`: unlocks the keyring, which may show its own prompt.
public struct KeyringUnlock: CallableMethod {
    public static let name = "keyring/unlock"
    public init() {}

    public init(_ json: JSON?) throws(InvalidParams) { _ = try Members(json, only: []) }

    public var json: JSON { [:] }

    public static func json(_ keyring: KeyringDescription) -> JSON { keyring.json }
}
