internal import CPlatform
internal import Glibc
internal import WatchwordCore

/// A body that is kept: of a request, for the case that it has to be sent again, or of a response that waits for an answer. In
/// memory while it is small, then in a file that has no name any more.
///
/// Lost, and then of no use, when there is no more room for it. Lives on the engine's loop.
struct BodyCopy: ~Copyable {
    /// Why a copy was lost.
    enum Loss: Equatable {
        case tooLarge
        /// Files of the same client, or of all clients, use the whole quota.
        case quota(Allowance.Shortage)
        /// The disk is full, or nearly so, or cannot be written.
        case noSpace
    }

    /// Not where the system keeps files in memory.
    private static let folder = "/var/tmp"

    private var memory: [UInt8] = []
    private var file: Int32 = -1
    private(set) var count = 0
    private(set) var loss: Loss?
    private let limit: Int
    /// The quota for what is in files, and the part of it that this copy uses.
    private let disk: Allowance?
    private var share: Allowance.Share?
    /// What is larger is in a file.
    private let memoryBytes: Int
    /// The quota for what is in memory, of which others have half, and the part of it that this copy uses.
    private let memoryQuota: Allowance?
    private var memoryShare: Allowance.Share?

    /// - Parameters:
    ///   - memory: the quota for what is in memory; beyond half of it the copy is in a file. `nil` for none.
    ///   - disk: the quota for what is in a file; `nil` for none.
    init(
        limit: Int = .max, memoryBytes: Int = EngineLimits.bodyCopyMemoryBytes, memory: Allowance? = nil,
        disk: Allowance? = nil
    ) {
        self.limit = limit
        self.memoryBytes = memoryBytes
        self.disk = disk
        memoryQuota = memory
        share = disk.map { Allowance.Share(of: $0) }
        memoryShare = memory.map { Allowance.Share(of: $0) }
    }

    deinit { if file >= 0 { close(file) } }

    mutating func append(_ bytes: UnsafeRawBufferPointer) {
        guard loss == nil else { return }
        if file < 0 && fitsIntoMemory(bytes.count) {
            memory += bytes
            memoryShare?.grow(by: bytes.count)
            count += bytes.count
            return
        }
        let growth = file < 0 ? count + bytes.count : bytes.count
        guard count + bytes.count <= limit else { return lose(.tooLarge) }
        if let shortage = disk?.shortage(for: growth) { return lose(.quota(shortage)) }
        guard DiskReserve.allows(growth, in: Self.folder) else { return lose(.noSpace) }
        // What was written before a failure counts, too, until the file is closed.
        share?.grow(by: growth)
        guard moveToFile(), write(bytes) else { return lose(.noSpace) }
        count += bytes.count
    }

    /// Gives up a copy that will not have room, before any of it is written.
    mutating func expect(_ size: Int) {
        guard loss == nil, size > memoryBytes, let shortage = disk?.shortage(for: size) else { return }
        lose(.quota(shortage))
    }

    var isLost: Bool { loss != nil }

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

    private func fitsIntoMemory(_ added: Int) -> Bool {
        count + added <= memoryBytes && memoryQuota?.leavesHalf(with: added) ?? true
    }

    private mutating func lose(_ reason: Loss) {
        loss = reason
        (share, memoryShare) = (nil, nil)
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
        memoryShare = nil
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
