public import WatchwordProtocol

/// Which schemes are used for some hosts.
public struct SchemeOrder: Sendable, Equatable {
    /// The hosts that are meant.
    public var hosts: HostPattern
    /// The first is tried first; what is not named is not used.
    public var order: [AuthenticationMethod]

    /// An order for the hosts that a pattern means.
    public init(hosts: HostPattern, order: [AuthenticationMethod]) {
        self.hosts = hosts
        self.order = order
    }
}

extension SchemeOrder {
    /// As they are written in the file, and listed in messages.
    private static let names: [(name: String, method: AuthenticationMethod)] = [
        ("negotiate", .negotiate), ("bearer", .bearer), ("digest", .httpDigest), ("basic", .httpBasic), ("ntlm", .ntlm),
    ]

    /// Reads "www.example.com digest basic".
    init(_ text: String) throws(Refusal) {
        let words = text.split(whereSeparator: { $0 == " " || $0 == "\t" }).map(String.init)
        guard let first = words.first else { throw Refusal("This is empty. \(Self.form)") }
        do throws(HostPattern.Invalid) {
            hosts = try HostPattern(first)
        } catch {
            throw Refusal(error.text)
        }
        guard words.count > 1 else { throw Refusal("Behind the host pattern there is no scheme. \(Self.form)") }
        order = []
        for word in words.dropFirst() {
            guard let method = Self.names.first(where: { $0.name == word })?.method else {
                throw Refusal(
                    "\"\(word.shortened)\" is not a scheme. There are \(Self.names.map(\.name).joined(separator: ", "))."
                )
            }
            guard !order.contains(method) else { throw Refusal("\(word) is named twice. Name it once.") }
            order.append(method)
        }
        // Other ports tell nothing about encryption; this one belongs to plain http.
        if hosts.port == 80, let place = order.firstIndex(of: .httpBasic), place + 1 < order.count {
            throw Refusal(
                "At port 80 nothing is encrypted, and basic sends the password readable, so that it may not come before "
                    + "another scheme. Name basic last.")
        }
    }

    private static let form = "Write a host pattern and schemes, for example \"www.example.com digest basic\"."

    /// As it is written in the file.
    var text: String {
        ([hosts.description] + order.compactMap { method in Self.names.first { $0.method == method }?.name })
            .joined(separator: " ")
    }
}

extension ConfigurationOption {
    static func schemeOrders(_ key: String, _ place: Place<[SchemeOrder]>, _ summary: String) -> ConfigurationOption {
        ConfigurationOption(
            key, .schemeOrders, summary,
            written: { "[\($0[keyPath: place].map { "\"\($0.text)\"" }.joined(separator: ", "))]" },
            change: { option, value, settings in
                guard case .strings(let texts) = value else { return [option.wrongType(value)] }
                var (orders, objections): ([SchemeOrder], [Objection]) = ([], [])
                for text in texts {
                    do throws(Refusal) {
                        let order = try SchemeOrder(text.text)
                        guard !orders.contains(where: { $0.hosts == order.hosts }) else {
                            throw Refusal("\(order.hosts) has an order already, and only one counts. Remove one.")
                        }
                        orders.append(order)
                    } catch {
                        objections.append(Objection(line: text.line, text: error.text))
                    }
                }
                if objections.isEmpty { settings[keyPath: place] = orders }
                return objections
            })
    }
}
