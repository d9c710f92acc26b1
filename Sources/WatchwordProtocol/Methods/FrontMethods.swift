public import JSONText

/// `front/open`: opens a front, which exists as long as the connection of the client.
public struct FrontOpen: CallableMethod, Equatable {
    public static let name = "front/open"

    /// A local HTTP server that forwards requests.
    public enum Kind: Sendable, Equatable {
        /// A forward proxy, for programs that send its token and for descendants of the client.
        case proxy
        case site(FrontSite)
    }

    public struct Opened: Sendable {
        public var id: String
        public var address: FrontAddress
        /// The token of a proxy.
        public var token: Secret?
        /// The name of a site's front, with the port; see `FrontDescription.name`.
        public var name: String?

        public init(id: String, address: FrontAddress, token: Secret? = nil, name: String? = nil) {
            (self.id, self.address, self.token, self.name) = (id, address, token, name)
        }
    }

    public var kind: Kind
    public var address: FrontAddress

    public init(_ kind: Kind, at address: FrontAddress = .ipv4(port: 0)) { (self.kind, self.address) = (kind, address) }

    public init(_ members: Members) throws(InvalidParams) {
        kind = try members.value("site", as: FrontSite.self).map(Kind.site) ?? .proxy
        address = .ipv4(port: 0)
        guard let listen = try members.string("listen") else { return }
        do throws(Refusal) { address = try FrontAddress(listen) } catch {
            throw InvalidParams("params.listen: \(error.text)")
        }
    }

    public var json: JSON {
        if case .site(let site) = kind {
            ["site": site.json, "listen": .string(address.text)]
        } else {
            ["listen": .string(address.text)]
        }
    }

    public static func json(_ opened: Opened) -> JSON {
        [
            "frontId": .string(opened.id), "listen": .string(opened.address.text),
            "name": opened.name.map { .string($0) },
            "token": opened.token?.withUnsafeBytes { JSON.string(secret: $0) },
        ]
    }
}

/// `front/close`: closes a front of this connection.
public struct FrontClose: CallableMethod, Equatable {
    public static let name = "front/close"

    public var id: String

    public init(id: String) { self.id = id }

    public init(_ members: Members) throws(InvalidParams) {
        id = try members.required("frontId", members.string("frontId"))
    }

    public var json: JSON { ["frontId": .string(id)] }
}

/// A front in `front/list`.
public struct FrontDescription: Sendable {
    public var id: String
    public var address: FrontAddress
    /// The URL of the site; `nil` for a proxy.
    public var site: String?
    /// The name below `localhost`, with the port, under which the site gets its cookies; `nil` for a proxy and at a Unix socket.
    public var name: String?
    /// The process that opened the front; `nil` for a front of the configuration.
    public var pid: Int?
    public var connections: Int
    public var requests: Int
    /// Why the front does not listen; `nil` if it does.
    public var problem: String?

    public init(id: String, address: FrontAddress, site: String?, pid: Int?) {
        (self.id, self.address, self.site, self.pid) = (id, address, site, pid)
        (connections, requests) = (0, 0)
    }

    public var json: JSON {
        [
            "frontId": .string(id), "listen": .string(address.text), "kind": site == nil ? "proxy" : "site",
            "url": site.map { .string($0) }, "name": name.map { .string($0) }, "pid": pid.map { .integer($0) },
            "connections": .integer(connections),
            "requests": .integer(requests), "problem": problem.map { .string($0) },
        ]
    }
}

/// `front/list`: lists the open fronts, and those of the configuration that could not be opened.
public struct FrontList: ParameterlessMethod {
    public static let name = "front/list"
    public init() {}
    public static func json(_ fronts: [FrontDescription]) -> JSON { ["fronts": .array(fronts.map(\.json))] }
}
