internal import CSecret
internal import WatchwordCore
internal import WatchwordProtocol

/// The calls on the default collection.
extension ServiceSession {
    /// The attribute under which the name of the schema is kept.
    static let schemaName: ExactText = "xdg:schema"
    private static let networkPassword: ExactText = "org.gnome.keyring.NetworkPassword"

    /// - Throws: `.refused` when the user has none.
    private func defaultCollection(_ call: KeyringCall) throws(KeyringFailure) -> String {
        let reply = try send(
            Self.root, Self.serviceInterface, "ReadAlias", [.name("default")], reply: "(o)", call
        ).orThrow(call)
        guard let path = reply.children.first?.text, path != "/" else { throw .noDefault }
        return path
    }

    func check(_ call: KeyringCall) throws(KeyringFailure) {
        if try isLocked(try defaultCollection(call), call) { throw .locked }
    }

    /// Unlocks the default collection. `onPrompt` runs before a window comes up.
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

    /// Puts the secret into the default collection, which is unlocked for that. `onPrompt` runs before a window comes up.
    func store(
        _ secret: Secret, attributes: [ExactText: ExactText], label: String, _ call: KeyringCall, onPrompt: () -> Void
    ) throws(KeyringFailure) -> String {
        var attributes = attributes
        attributes[Self.schemaName] = Self.networkPassword
        guard let packed = Variant.attributes(attributes), let title = Variant.text(label) else { throw .hasZero }
        let collection = try unlockedCollection(call, onPrompt: onPrompt)

        // "Replace" in the specification's sense takes any item that has these attributes and more, and so the item of somebody
        // else: only an item with exactly these is changed.
        let similar = try similarItems(packed, in: collection, call)
        if let present = similar.first(where: { $0.attributes == attributes }) {
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
        // What a prompt comes to is in a box: here the path of the item.
        guard let path = try complete(prompt, call).children.first?.text else { throw .badReply("CreateItem") }
        return path
    }
}
