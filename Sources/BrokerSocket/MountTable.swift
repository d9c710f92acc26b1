internal import Glibc

/// The content of `/proc/PID/mountinfo` (proc(5)). It is searched by bytes, because that happens for each connection, and a
/// machine with containers has hundreds of mounts.
struct MountTable {
    private let bytes: [UInt8]

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// Whether reads on the mount that the process shows as `number` do not wait for a server; `false` for an unknown one.
    func isLocal(_ number: some Collection<UInt8>) -> Bool {
        let start = Array(number) + [Self.space]
        guard let line = bytes.lines.first(where: { $0.starts(with: start) }) else { return false }
        // Optional fields of any number end with a hyphen.
        let fields = line.split(separator: Self.space).drop { !$0.elementsEqual("-".utf8) }
        guard let type = fields.dropFirst().first else { return false }
        let isWaitedFor =
            type.starts(with: "fuse".utf8) || type.starts(with: "nfs".utf8)
            || ["cifs", "smb3", "9p", "ceph", "afs", "coda"].contains { type.elementsEqual($0.utf8) }
        return !isWaitedFor
    }

    private static let space = UInt8(ascii: " ")
}

extension [UInt8] {
    /// The lines, without their ends.
    var lines: some Sequence<ArraySlice<UInt8>> {
        sequence(state: self[...]) { rest -> ArraySlice<UInt8>? in
            guard !rest.isEmpty else { return nil }
            let length = rest.withUnsafeBytes { bytes in
                memchr(bytes.baseAddress!, 0x0A, bytes.count).map {
                    $0 - UnsafeMutableRawPointer(mutating: bytes.baseAddress!)
                }
            }
            let end = length.map { rest.startIndex + $0 } ?? rest.endIndex
            defer { rest = rest[Swift.min(end + 1, rest.endIndex)...] }
            return rest[..<end]
        }
    }
}
