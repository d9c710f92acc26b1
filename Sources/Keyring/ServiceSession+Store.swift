internal import CSecret
internal import WatchwordCore
internal import WatchwordProtocol

/// The calls on the default collection.
extension ServiceSession {
    /// The attribute that contains the name of the schema.
    static let schemaName: ExactText = "xdg:schema"
    private static let networkPassword: ExactText = "org.gnome.keyring.NetworkPassword"
    private static let keepassxcFields: Set<ExactText> = ["Title", "UserName", "URL", "Notes", "Path", "Uuid"]

    /// Returns the path of the default collection.
    /// - Throws: `.refused` if there is none.
    private func defaultCollection(_ call: KeyringCall) throws(KeyringFailure) -> String {
        let reply = try send(
            Self.root, Self.serviceInterface, "ReadAlias", [.name("default")], reply: "(o)", call
        ).orThrow(call)
        guard let path = reply.children.first?.text, path != "/" else { throw .noDefault }
        return path
    }

    /// Throws unless the default collection is unlocked.
    func check(_ call: KeyringCall) throws(KeyringFailure) {
        if try isLocked(try defaultCollection(call), call) { throw .locked }
    }

    /// Unlocks the default collection. `onPrompt` runs before the keyring shows a window.
    func unlock(_ call: KeyringCall, onPrompt: () -> Void) throws(KeyringFailure) {
        _ = try unlockedCollection(call, onPrompt: onPrompt)
    }

    private func unlockedCollection(_ call: KeyringCall, onPrompt: () -> Void) throws(KeyringFailure) -> String {
        let collection = try defaultCollection(call)
        guard try isLocked(collection, call) else { return collection }
        guard let path = Variant.path(collection) else { throw .badReply("ReadAlias") }
        let reply = try send(
            Self.root, Self.serviceInterface, "Unlock", [.array(of: "o", [path])], reply: "(aoo)", call
        ).orThrow(call)
        guard let prompt = reply.children.last?.text else { throw .badReply("Unlock") }
        if prompt != "/" {
            onPrompt()
            _ = try complete(prompt, call)
        }
        if try isLocked(collection, call) { throw .locked }
        return collection
    }

    /// Unlocks the default collection, stores the secret in it, and returns the path of the item. `onPrompt` runs before the
    /// keyring shows a window.
    func store(
        _ secret: Secret, attributes: [ExactText: ExactText], label: String, _ call: KeyringCall, onPrompt: () -> Void
    ) throws(KeyringFailure) -> String {
        var attributes = attributes
        attributes[Self.schemaName] = Self.networkPassword
        guard let packed = Variant.attributes(attributes), let title = Variant.text(label) else {
            throw .nulInAttribute
        }
        let collection = try unlockedCollection(call, onPrompt: onPrompt)

        // The `replace` argument of CreateItem replaces any item that has at least these attributes, which may belong to
        // another program. It is therefore set only if no such item exists. If an item has exactly these attributes, its
        // secret is changed.
        let similar = try similarItems(packed, in: collection, call)
        if let present = similar.first(where: { Self.withoutFields($0.attributes) == attributes }) {
            _ = try send(
                present.id, Self.itemInterface, "SetSecret", [try encode(secret)], reply: "()", call
            ).orThrow(call)
            try set("Label", of: present.id, Self.itemInterface, to: title, call)
            return present.id
        }
        let properties = Variant.array(
            of: "{sv}",
            [
                .entry(.name("org.freedesktop.Secret.Item.Label"), .boxed(title)),
                .entry(.name("org.freedesktop.Secret.Item.Attributes"), .boxed(packed)),
            ])
        let reply = try send(
            collection, Self.collectionInterface, "CreateItem",
            [properties, try encode(secret), .flag(similar.isEmpty)], reply: "(oo)", call
        ).orThrow(call)
        return try created(reply, call, onPrompt: onPrompt)
    }

    /// Returns the attributes of an item without the fields of its entry, which KeePassXC adds to those that were stored.
    private static func withoutFields(_ attributes: [ExactText: ExactText]) -> [ExactText: ExactText] {
        guard keepassxcFields.allSatisfy({ attributes[$0] != nil }) else { return attributes }
        return attributes.filter { !keepassxcFields.contains($0.key) }
    }

    private func similarItems(
        _ attributes: Variant, in collection: String, _ call: KeyringCall
    ) throws(KeyringFailure) -> [KeyringItem] {
        let reply = try send(
            collection, Self.collectionInterface, "SearchItems", [attributes], reply: "(ao)", call
        ).orThrow(call)
        var items: [KeyringItem] = []
        for id in (reply.children.first?.paths ?? []).prefix(Limits.keyringItems) {
            if let item = try item(id, call) { items.append(item) }
        }
        return items
    }

    private func created(
        _ reply: Variant, _ call: KeyringCall, onPrompt: () -> Void
    ) throws(KeyringFailure) -> String {
        guard let path = reply.children.first?.text, let prompt = reply.children.last?.text else {
            throw .badReply("CreateItem")
        }
        if prompt == "/" { return path }
        onPrompt()
        // The result of a prompt is a variant in a variant: here the path of the item.
        guard let path = try complete(prompt, call).children.first?.text else { throw .badReply("CreateItem") }
        return path
    }
}
