import JSONText

/// The OpenRPC document that `rpc.discover` returns.
enum ProtocolDocument {
    static func load() -> JSON { [:] }
}
