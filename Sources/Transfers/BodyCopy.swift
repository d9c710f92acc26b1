internal import CPlatform
internal import Glibc

/// A body that is kept: of a request, for the case that it has to be sent again, or of a response that waits for an answer. In
/// memory while it is small, then in a file that has no name any more.
///
/// Lost, and then of no use, when there is no more room for it. Lives on the engine's thread.
struct BodyCopy: ~Copyable {
    /// Not where the system keeps files in memory.
    private static let folder = "/var/tmp"

    private var memory: [UInt8] = []
    private var file: Int32 = -1
    private(set) var count = 0
    private(set) var isLost = false
    private let limit: Int
    /// What is larger is in a file.
    private let memoryBytes: Int

    init(limit: Int = EngineLimits.bodyCopyBytes, memoryBytes: Int = EngineLimits.bodyCopyMemoryBytes) {
        self.limit = limit
        self.memoryBytes = memoryBytes
    }

    deinit { if file >= 0 { close(file) } }

    mutating func append(_ bytes: UnsafeRawBufferPointer) {
        guard !isLost else { return }
        if file < 0 && count + bytes.count <= memoryBytes {
            memory += bytes
            count += bytes.count
            return
        }
        guard count + bytes.count <= limit, moveToFile(), write(bytes) else { return lose() }
        count += bytes.count
    }

    /// The bytes from `offset` on, as many as fit. 0 when the copy does not reach that far, or cannot be read.
    func read(from offset: Int, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        guard !isLost, offset < count else { return 0 }
        let wanted = min(buffer.count, count - offset)
        guard file >= 0 else {
            memory.withUnsafeBytes { memory in
                buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: memory[offset..<(offset + wanted)]))
            }
            return wanted
        }
        return max(0, pread(file, buffer.baseAddress, wanted, off_t(offset)))
    }

    mutating func lose() {
        isLost = true
        memory = []
        if file >= 0 { close(file) }
        file = -1
    }

    private mutating func moveToFile() -> Bool {
        if file >= 0 { return true }
        var template = Array("\(Self.folder)/watchword-XXXXXX".utf8CString)
        file = mkstemp(&template)
        guard file >= 0, watchword_set_close_on_exec(file) == 0 else { return false }
        unlink(template)
        let whole = memory
        memory = []
        return whole.withUnsafeBytes { Self.write($0, to: file, at: 0) }
    }

    private func write(_ bytes: UnsafeRawBufferPointer) -> Bool { Self.write(bytes, to: file, at: count) }

    private static func write(_ bytes: UnsafeRawBufferPointer, to file: Int32, at offset: Int) -> Bool {
        var written = 0
        while written < bytes.count {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[written...])
            let count = pwrite(file, rest.baseAddress, rest.count, off_t(offset + written))
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { return false }
            written += count
        }
        return true
    }
}
