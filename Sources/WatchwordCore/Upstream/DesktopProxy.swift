internal import WatchwordProtocol

/// The proxy settings of the GNOME desktop (`org.gnome.system.proxy`).
public struct DesktopProxy: Sendable, Equatable {
    private enum Mode: String {
        case none, manual, auto
    }

    /// The proxies by their schema: `http`, `https`, `socks`.
    private var endpoints: [String: ProxyEndpoint] = [:]
    private var mode = Mode.none
    private var ignored: [IgnoredHosts] = []
    private var script = ""

    /// Parses the output of `gsettings list-recursively org.gnome.system.proxy`.
    /// - Throws: `UpstreamFailure` if the mode is missing or unknown.
    public init(gsettings text: String) throws(UpstreamFailure) {
        var values: [Substring: Substring] = [:]
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ", maxSplits: 2)
            if words.count == 3 { values["\(words[0]) \(words[1])"] = words[2] }
        }
        func texts(_ key: String) -> [String] {
            let parts = values["org.gnome.system.proxy\(key)"]?.split(
                separator: "'", omittingEmptySubsequences: false)
            return parts?.enumerated().filter { $0.offset % 2 == 1 }.map { String($0.element) } ?? []
        }
        guard let mode = texts(" mode").first.flatMap(Mode.init) else {
            throw UpstreamFailure("the desktop has no proxy settings (org.gnome.system.proxy)")
        }
        self.mode = mode
        script = texts(" autoconfig-url").first ?? ""
        ignored = texts(" ignore-hosts").map { IgnoredHosts($0) }
        for (schema, scheme) in [("http", "http"), ("https", "http"), ("socks", "socks5h")] {
            guard let host = texts(".\(schema) host").first, !host.isEmpty,
                let port = values["org.gnome.system.proxy.\(schema) port"].flatMap({ Int($0) }), port > 0
            else { continue }
            let place = host.contains(":") && !host.hasPrefix("[") ? "[\(host)]" : host
            endpoints[schema] = try? ProxyEndpoint("\(scheme)://\(place):\(port)")
        }
    }

    /// The URL of the PAC file, if the desktop uses one; empty if it is to be discovered (WPAD).
    public var scriptURL: String? { mode == .auto ? script : nil }

    /// Returns the upstreams for a server, if the desktop uses no PAC file.
    /// - Throws: `UpstreamFailure` if the settings name no proxy for it.
    public func upstreams(for origin: Origin) throws(UpstreamFailure) -> [Upstream] {
        guard mode == .manual, !ignored.contains(where: { $0.matches(origin) }) else { return [.direct] }
        let endpoint = endpoints[origin.scheme.rawValue] ?? endpoints["socks"]
        guard let endpoint else {
            throw UpstreamFailure(
                "the desktop's proxy settings are manual, but name no proxy for \(origin.scheme.rawValue)")
        }
        return [.proxy(endpoint)]
    }
}

/// An entry of `ignore-hosts`: a host name, a domain, an address, or a range of addresses.
private struct IgnoredHosts: Sendable, Equatable {
    private let pattern: HostPattern?

    /// An entry that is malformed matches nothing.
    init(_ text: String) {
        let isAddress = text.contains(":") && NetworkAddress(text) != nil && !text.hasPrefix("[")
        pattern = try? HostPattern(isAddress ? "[\(text)]" : text, allowsNetworks: true)
    }

    func matches(_ origin: Origin) -> Bool { pattern?.matches(host: origin.host, port: origin.port) ?? false }
}
