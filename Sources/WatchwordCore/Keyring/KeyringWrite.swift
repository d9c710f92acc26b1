public import WatchwordProtocol

/// The changes to make to the keyring to store a credential.
public struct KeyringWrite: Sendable, Equatable {
    /// The item that already contains the same credential; if there is one, nothing needs to be written.
    public let unchanged: String?
    /// The item that lacks only the Windows domain; if there is one, its attributes are replaced.
    public let incomplete: String?
    public let attributes: [ExactText: ExactText]
    public let secret: Secret
    public let label: String

    /// - Parameter items: the items of the keyring for the server, with secrets.
    public init(_ credential: LoginCredential, for pattern: SpacePattern, over items: [KeyringItem]) {
        let ours = KeyringAttributes.attributes(for: pattern, credential.account, path: credential.path)
        let secret = KeyringSecret.text(of: credential)
        self.secret = secret
        let sameSpace = items.filter { $0.holds(ours, allowing: KeyringAttributes.ofAccount(in: pattern)) }
        let existing = sameSpace.first { $0.holds(ours) }
        unchanged = existing.flatMap { $0.secret == secret ? $0.id : nil }
        let withoutDomain = KeyringAttributes.attributes(
            for: pattern, Account(user: credential.user), path: credential.path)
        let predecessor =
            existing ?? sameSpace.first { $0.holds(withoutDomain) && $0.secret == secret }
        incomplete = existing == nil ? predecessor?.id : nil
        var attributes = ours
        // The first user of a space is its default (SEMANTICS rule 18).
        if predecessor?.isMarkedDefault ?? sameSpace.isEmpty { attributes[KeyringAttributes.preferred] = "1" }
        self.attributes = attributes
        label = KeyringAttributes.label(for: pattern, credential.account)
    }
}

extension KeyringItem {
    var isMarkedDefault: Bool { attributes[KeyringAttributes.preferred] == "1" }

    /// Whether the item has the broker's schema and exactly the attributes `wanted`, ignoring `others`.
    fileprivate func holds(_ wanted: [ExactText: ExactText], allowing others: Set<ExactText> = []) -> Bool {
        let schema = KeyringAttributes.everything
        return schema.allSatisfy { attributes[$0.key] == $0.value } && says(wanted, besides: others)
    }

    /// Whether the item has exactly the attributes `wanted`, ignoring `others` and the schema.
    func says(_ wanted: [ExactText: ExactText], besides others: Set<ExactText> = []) -> Bool {
        let aside = others.union(KeyringAttributes.everything.keys).union([KeyringAttributes.preferred])
        return attributes.filter { !aside.contains($0.key) } == wanted.filter { !others.contains($0.key) }
    }
}
