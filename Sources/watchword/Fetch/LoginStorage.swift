import ArgumentParser
import JSONText
import WatchwordProtocol

/// The value of `--keep`: how long to store a credential.
enum LoginStorage: String, ExpressibleByArgument, CaseIterable {
    case none, session, keyring

    var persistence: Persistence {
        switch self {
        case .none: .none
        case .session: .forSession
        case .keyring: .permanent
        }
    }

    /// Returns the persistence that `challenge` allows, with a note for the user if it is shorter than requested.
    func granted(by challenge: JSON) -> (persistence: Persistence, note: String?) {
        guard let names = challenge["persistenceAllowed"]?.elements else { return (persistence, nil) }
        let allowed = names.compactMap { $0.string.flatMap(Persistence.init(rawValue:)) }
        if allowed.contains(persistence) { return (persistence, nil) }
        guard allowed.contains(.forSession) else {
            return (.none, "\(Self.reason(in: challenge)); the login you type is used for this fetch only.")
        }
        return (
            .forSession,
            "The keyring cannot be used (see: watchword keyring status); the login you type is stored for this session only."
        )
    }

    /// Returns why the answer to `challenge` is not stored.
    private static func reason(in challenge: JSON) -> String {
        if challenge["certificateException"] != nil { return "Logins for a server that is not verified are not stored" }
        if challenge["namedProxy"] != nil { return "Logins through a proxy that the program names are not stored" }
        return "Logins cannot be stored now (see: watchword status)"
    }
}
