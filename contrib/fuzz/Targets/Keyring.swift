import WatchwordProtocol

@testable import WatchwordCore

private let challengers: [Challenger] = [
    .server(Origin(scheme: .https, host: "h", port: 443)), .server(Origin(scheme: .http, host: "h", port: 80)),
    .server(Origin(scheme: .http, host: "localhost", port: 8080)),
    .server(Origin(scheme: .https, host: "h", port: 8443)),
    .proxy(ProxyEndpoint(type: .http, host: "h", port: 3128)),
    .proxy(ProxyEndpoint(type: .socks, host: "h", port: 1080)),
]

/// Checks that a match for a server or proxy names exactly that server or proxy and does not depend on the order of the items, that
/// only an item that names http is used over http, and that a stored item is found again.
///
/// The first byte selects the challenger. Lines like `server=h` follow, with an empty line between two items.
func checkKeyring(_ bytes: [UInt8]) throws {
    guard let choice = bytes.first else { return }
    let challenger = challengers[Int(choice) % challengers.count]
    let items = Array(bytes[1...]).lines.split(separator: "").prefix(8).enumerated().map {
        KeyringItem($1, id: "\($0)")
    }
    let space = challenger.space(realm: "r", .httpBasic)
    func find(_ items: [KeyringItem]) -> KeyringMatch {
        KeyringMatch(items, for: space, at: challenger, path: "/a/b", user: nil)
    }
    let found = find(items)
    switch (found, find(items.reversed())) {
    case (.credential(let left, _, _), .credential(let right, _, _)):
        try hold(left.isSame(as: right), "the match depends on the order")
    case (let left, let right): try hold(left == right, "the match depends on the order")
    }
    if case .credential(let credential, let id, let isExact) = found, let item = items.first(where: { $0.id == id }) {
        try hold(item.secret == credential.secret, "the match has the secret of another item")
        try checkPlace(item.attributes, challenger)
        let ours = KeyringAttributes.attributes(for: SpacePattern(space), credential.account)
        if isExact { try hold(ours.allSatisfy { item.attributes[$0] == $1 }, "a partial match is taken for exact") }
    }
    for user in items.compactMap({ $0.attributes["user"] }) where !user.isEmpty {
        var stored = KeyringItem(id: "own", label: "", attributes: [:], secret: nil, isLocked: false)
        stored.attributes = KeyringAttributes.attributes(for: SpacePattern(space), Account(user: user))
        stored.secret = Secret(capacity: 0) { _ in 0 }
        guard case .credential(let own, "own", true) = find([stored]), own.user == user else {
            throw Broken(description: "the item stored for \(user) is not found")
        }
    }
    try checkListing(items)
}

private func checkPlace(_ attributes: [ExactText: ExactText], _ challenger: Challenger) throws {
    let server = attributes["server"]?.asciiLowercased
    let named = attributes["protocol"]?.asciiLowercased
    let service = attributes["service"]?.asciiLowercased ?? ""
    try hold(
        server.map { $0 == challenger.host } ?? service.string.contains(challenger.host.string),
        "for another host: \(attributes)")
    let realm = attributes["domain"] ?? ""
    try hold(realm.isEmpty || realm == "r", "for another realm: \(attributes)")
    if challenger.isProxy {
        let type = ExactText(challenger.proxyType.map(KeyringAttributes.protocolName) ?? "")
        try hold(named == type && attributes["port"] == "\(challenger.port)", "not for this proxy: \(attributes)")
        return
    }
    try hold(server == nil || named?.hasSuffix("-proxy") != true, "for a proxy: \(attributes)")
    if challenger.scheme == "http" && !Loopback.isLoopback(challenger.host) {
        let saysSo = server == nil ? service.hasPrefix("http://") : named == "http"
        try hold(saysSo, "not for http: \(attributes)")
    }
    if server != nil, let port = attributes["port"], port != "0", !port.isEmpty {
        try hold(port == "\(challenger.port)", "for another port: \(attributes)")
    }
}

private func checkListing(_ items: [KeyringItem]) throws {
    for item in items {
        guard let stored = StoredItem(item) else { continue }
        try hold(
            (1...65_535).contains(stored.pattern.port) && !stored.account.user.isEmpty,
            "listed without a user or with an invalid port: \(stored)")
        var changed = stored.attributes(isDefault: true)
        changed["watchword-default"] = item.attributes["watchword-default"]
        try hold(changed == item.attributes, "making it the default changes other attributes: \(changed)")
    }
}

extension KeyringItem {
    fileprivate init(_ lines: some Sequence<String>, id: String) {
        self.init(id: id, label: "", attributes: [:], secret: nil, isLocked: false)
        for line in lines {
            let sides = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            if sides.count == 2 { attributes[ExactText(sides[0])] = ExactText(sides[1]) }
        }
        secret = attributes.removeValue(forKey: "secret").map { text in
            Array(text.utf8).withUnsafeBytes { Secret(copying: $0) }
        }
    }
}
