public import WatchwordProtocol

/// The authentication schemes for some hosts, in order of preference.
public struct SchemeOrder: Sendable, Equatable {
    /// The hosts to which the order applies.
    public var hosts: HostPattern
    /// The schemes, the preferred one first; other schemes are not used.
    public var order: [AuthenticationMethod]

    public init(hosts: HostPattern, order: [AuthenticationMethod]) {
        self.hosts = hosts
        self.order = order
    }
}

extension SchemeOrder {
    /// The names of the schemes in the file and in messages.
    private static let names: [(name: String, method: AuthenticationMethod)] = [
        ("negotiate", .negotiate), ("bearer", .bearer), ("digest", .httpDigest), ("basic", .httpBasic), ("ntlm", .ntlm),
    ]

    /// Parses a text such as "www.example.com digest basic".
    init(_ text: String) throws(Refusal) {
        let words = text.split(whereSeparator: { $0 == " " || $0 == "\t" }).map(String.init)
        guard let first = words.first else { throw Refusal("empty string; \(Self.form)") }
        do throws(HostPattern.Invalid) {
            hosts = try HostPattern(first)
        } catch {
            throw Refusal(error.text)
        }
        guard words.count > 1 else { throw Refusal("no scheme after the host pattern; \(Self.form)") }
        order = []
        for word in words.dropFirst() {
            guard let method = Self.names.first(where: { $0.name == word })?.method else {
                throw Refusal(
                    "unknown scheme \"\(word.shortened)\"; use \(Self.names.map(\.name).joined(separator: ", "))"
                )
            }
            guard !order.contains(method) else { throw Refusal("duplicate scheme \(word); remove one") }
            order.append(method)
        }
        // Port 80 is the port of http. For other ports it is unknown whether connections are encrypted.
        if hosts.port == 80, let place = order.firstIndex(of: .httpBasic), place + 1 < order.count {
            throw Refusal(
                "basic must not precede another scheme for port 80, because it sends the password over an unencrypted "
                    + "connection; put basic last")
        }
    }

    private static let form = "write a host pattern and schemes, for example \"www.example.com digest basic\""

    /// The order as it is written in the file.
    var text: String {
        ([hosts.description] + order.compactMap { method in Self.names.first { $0.method == method }?.name })
            .joined(separator: " ")
    }
}
