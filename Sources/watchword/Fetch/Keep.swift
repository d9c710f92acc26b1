import ArgumentParser
import JSONText
import WatchwordProtocol

/// How long `watchword fetch` has a credential kept.
enum Keep: String, ExpressibleByArgument, CaseIterable {
    case none, session, keyring

    var persistence: Persistence {
        switch self {
        case .none: .none
        case .session: .forSession
        case .keyring: .permanent
        }
    }

    /// What of it is possible for a challenge, and a line for the user where that is less.
    func granted(by challenge: JSON) -> (persistence: Persistence, note: String?) {
        guard let names = challenge["persistenceAllowed"]?.elements else { return (persistence, nil) }
        let allowed = names.compactMap { $0.string.flatMap(Persistence.init(rawValue:)) }
        if allowed.contains(persistence) { return (persistence, nil) }
        guard allowed.contains(.forSession) else {
            return (
                .none, "Nothing can be kept now (see: watchword status): what is typed is used for this fetch alone."
            )
        }
        return (
            .forSession,
            "The keyring cannot be used (see: watchword keyring status): what is typed is kept for the session."
        )
    }
}
