internal import CSecret
internal import WatchwordCore
internal import WatchwordProtocol

/// The calls on items.
extension ServiceSession {
    static let root = "/org/freedesktop/secrets"
    static let serviceInterface = "org.freedesktop.Secret.Service"
    static let collectionInterface = "org.freedesktop.Secret.Collection"
    static let itemInterface = "org.freedesktop.Secret.Item"
    private static let propertiesInterface = "org.freedesktop.DBus.Properties"

    func search(
        _ queries: [[ExactText: ExactText]], withSecrets: Bool, _ call: KeyringCall
    ) throws(KeyringFailure) -> [KeyringItem] {
        var items: [KeyringItem] = []
        var seen: Set<String> = []
        for query in queries {
            for id in try find(query, call) where items.count < Limits.keyringItems && seen.insert(id).inserted {
                // The item may have been deleted meanwhile, or be unreadable.
                guard let item = try self.item(id, call) else { continue }
                guard withSecrets && !item.isLocked else {
                    items.append(item)
                    continue
                }
                if let complete = try withSecret(item, call) { items.append(complete) }
            }
        }
        return items
    }

    /// Returns the paths of all items with the attributes of `query`, the unlocked ones first.
    private func find(_ query: [ExactText: ExactText], _ call: KeyringCall) throws(KeyringFailure) -> [String] {
        let (unlocked, locked) = try paths(query, call)
        return unlocked + locked
    }

    func paths(
        _ query: [ExactText: ExactText], _ call: KeyringCall
    ) throws(KeyringFailure) -> (unlocked: [String], locked: [String]) {
        // D-Bus cannot transport these attributes, so no item has them.
        guard let attributes = Variant.attributes(query) else { return ([], []) }
        let reply = try send(
            Self.root, Self.serviceInterface, "SearchItems", [attributes], reply: "(aoao)", call
        ).orThrow(call)
        let lists = reply.children.map(\.paths)
        return (lists.first ?? [], lists.dropFirst().first ?? [])
    }

    /// Returns the item without its secret; `nil` if it does not exist or its attributes are not valid text.
    func item(_ id: String, _ call: KeyringCall) throws(KeyringFailure) -> KeyringItem? {
        let reply = try send(
            id, Self.propertiesInterface, "GetAll", [.name("org.freedesktop.Secret.Item")], reply: "(a{sv})", call
        ).orThrowUnlessGone(call)
        guard let properties = reply?.children.first, let attributes = properties["Attributes"]?.attributes else {
            return nil
        }
        return KeyringItem(
            id: id, label: properties["Label"]?.text ?? "", attributes: attributes, secret: nil,
            isLocked: properties["Locked"]?.flag ?? false)
    }

    private func withSecret(_ item: KeyringItem, _ call: KeyringCall) throws(KeyringFailure) -> KeyringItem? {
        var item = item
        do throws(KeyringFailure) {
            guard let secret = try secret(of: item.id, call) else { return nil }
            item.secret = secret
        } catch {
            // The item was locked after it was read, or the service wants to ask the user first.
            guard error.kind == .locked else { throw error }
            item.isLocked = true
        }
        return item
    }

    /// Returns the secret; `nil` if the item no longer exists or its secret cannot be decrypted.
    private func secret(of id: String, _ call: KeyringCall) throws(KeyringFailure) -> Secret? {
        guard let session = sessionPath else { return nil }
        let reply = try send(
            id, Self.itemInterface, "GetSecret", [session], reply: "((oayays))", call
        ).orThrowUnlessGone(call)
        return reply?.children.first.flatMap { decode($0) }
    }

    /// Removes the item if its secret is `expected`, or unconditionally. `onPrompt` runs before the keyring shows a window.
    func remove(
        _ id: String, ifSecretIs expected: Secret?, _ call: KeyringCall, onPrompt: () -> Void
    ) throws(KeyringFailure) -> Bool {
        guard Variant.path(id) != nil else { throw .noSuchItem(id) }
        if let expected {
            guard let item = try item(id, call) else { return false }
            if item.isLocked { throw .locked }
            guard let present = try secret(of: id, call), present == expected else { return false }
        }
        let reply = try send(id, Self.itemInterface, "Delete", [], reply: "(o)", call).orThrowUnlessGone(call)
        guard let reply else { return false }
        guard let prompt = reply.children.first?.text else { throw .badReply("Delete") }
        if prompt != "/" {
            // Only `unlock` and `store` may show a window to unlock the item. KeePassXC deletes even an unlocked item only after
            // a prompt, which may show a window, so the user must have asked for the removal.
            guard expected == nil, try item(id, call)?.isLocked == false else {
                dismiss(prompt)
                throw .locked
            }
            onPrompt()
            _ = try complete(prompt, call)
        }
        return true
    }

    func setAttributes(
        _ attributes: [ExactText: ExactText], of id: String, _ call: KeyringCall
    ) throws(KeyringFailure) {
        guard Variant.path(id) != nil, let item = try item(id, call) else { throw .noSuchItem(id) }
        if item.isLocked { throw .locked }
        // Without its schema an item becomes a generic one, which a search with the schema does not find.
        let schema = item.attributes[Self.schemaName].map { [Self.schemaName: $0] } ?? [:]
        guard let value = Variant.attributes(attributes.merging(schema) { own, _ in own }) else {
            throw .nulInAttribute
        }
        try set("Attributes", of: id, Self.itemInterface, to: value, call)
    }

    // MARK: Properties

    func set(
        _ property: StaticString, of path: String, _ interface: String, to value: Variant, _ call: KeyringCall
    ) throws(KeyringFailure) {
        guard let interface = Variant.text(interface) else { throw .nulInAttribute }
        _ = try send(
            path, Self.propertiesInterface, "Set", [interface, .name(property), .boxed(value)], reply: "()", call
        ).orThrow(call)
    }

    /// Whether the collection is locked.
    func isLocked(_ collection: String, _ call: KeyringCall) throws(KeyringFailure) -> Bool {
        let reply = try send(
            collection, Self.propertiesInterface, "Get", [.name("org.freedesktop.Secret.Collection"), .name("Locked")],
            reply: "(v)", call
        ).orThrow(call)
        guard let locked = reply.children.first?.children.first?.flag else { throw .badReply("Get") }
        return locked
    }
}

extension Result where Success == Variant, Failure == ServiceError {
    func orThrow(_ call: KeyringCall) throws(KeyringFailure) -> Variant {
        switch self {
        case .success(let value): return value
        case .failure(let error): throw error.failure(call)
        }
    }

    /// Returns the reply; `nil` if the object does not exist.
    func orThrowUnlessGone(_ call: KeyringCall) throws(KeyringFailure) -> Variant? {
        if case .failure(let error) = self, error.isNoSuchObject { return nil }
        return try orThrow(call)
    }
}
