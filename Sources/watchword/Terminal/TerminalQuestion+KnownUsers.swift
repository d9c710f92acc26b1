import JSONText
import WatchwordProtocol

/// The selection of a matching stored credential by its user name.
extension TerminalQuestion {
    /// Returns a line with the saved logins; `nil` if there are none.
    static func knownUsersNote(_ params: JSON) -> String? {
        let names = known(params).map { "\"\($0.account.text.shortened)\"" }
        return names.isEmpty
            ? nil : "Saved logins: \(names.joined(separator: ", ")). Type one of these names to use it."
    }

    /// Returns the answer that uses the saved login of `user`; `nil` if there is none.
    static func storedAnswer(_ params: JSON, for user: ExactText) -> ChallengeAnswer? {
        let chosen = known(params).first { $0.account.text == user }
        return chosen.map { .credential(.stored($0.id)) }
    }

    private static func known(_ params: JSON) -> [KnownUser] {
        (params["knownUsers"]?.elements ?? []).compactMap(KnownUser.init)
    }
}
