internal import CProtocolDocument
internal import JSONText

/// The OpenRPC document that `rpc.discover` returns.
enum ProtocolDocument {
    private static let limits = JSONLimits(depth: 64, values: 100_000)

    static func load() -> JSON {
        var length = 0
        let start = watchword_openrpc_document(&length)
        let document = try? JSON.parse(UnsafeRawBufferPointer(start: start, count: length), limits: limits)
        guard let document else { preconditionFailure("Protocol/openrpc.json is not JSON") }
        return document
    }
}
