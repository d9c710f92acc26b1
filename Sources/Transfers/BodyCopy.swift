internal import CPlatform
internal import Glibc
internal import WatchwordCore

/// A copy of a request body that may have to be sent again, or of the response body of a challenge or redirect. A small copy is
/// in memory, a larger one in an unlinked temporary file.
///
/// A copy that exceeds a limit is lost, and cannot be read. Used on the engine's loop only.
struct BodyCopy: ~Copyable {
    /// Why a copy was lost.
    enum Loss: Equatable {
        case tooLarge
        /// The copy would exceed the quota for files of its client, or of all clients.
        case quota(Quota.QuotaExceeded)
        /// The file system has too little free space, or the file cannot be written.
        case noSpace
    }

    /// The directory of the files. /tmp is not used, because it may be in memory.
    private static let folder = "/var/tmp"

    private var memory: [UInt8] = []
    private var file: Int32 = -1
    private(set) var count = 0
    private(set) var loss: Loss?
    private let limit: Int
    /// The quota for files, and this copy's usage of it.
    private let disk: Quota?
    private var share: Quota.Share?
    /// The largest size in memory; a larger copy is in a file.
    private let memoryBytes: Int
    /// The quota for memory, of which copies may use half, and this copy's usage of it.
    private let memoryQuota: Quota?
    private var memoryShare: Quota.Share?

    /// - Parameters:
    ///   - memory: the quota for memory; beyond half of it the copy is in a file. `nil` for none.
    ///   - disk: the quota for files; `nil` for none.
    init(
        limit: Int = .max, memoryBytes: Int = EngineLimits.bodyCopyMemoryBytes, memory: Quota? = nil,
        disk: Quota? = nil
    ) {
        self.limit = limit
        self.memoryBytes = memoryBytes
        self.disk = disk
        memoryQuota = memory
        share = disk.map { Quota.Share(of: $0) }
        memoryShare = memory.map { Quota.Share(of: $0) }
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
        if let shortage = disk?.shortage(for: growth) { return lose(.quota(shortage)) }  // guard: disk-quota
        guard DiskReserve.allows(growth, in: Self.folder) else { return lose(.noSpace) }
        // Charges the quota before the write, because bytes written before a failure also use space until the file is closed.
        share?.grow(by: growth)
        guard moveToFile(), write(bytes) else { return lose(.noSpace) }
        count += bytes.count
    }

    /// Marks the copy as lost if the quota for files has no room for its announced size, in bytes. Called before `append`.
    mutating func expect(_ size: Int) {
        guard loss == nil, size > memoryBytes, let shortage = disk?.shortage(for: size) else { return }
        lose(.quota(shortage))
    }

    var isLost: Bool { loss != nil }

    /// Reads bytes from `offset` on, as many as fit into `buffer`, and returns their number: 0 beyond the end, or if the copy
    /// cannot be read.
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
        count + added <= memoryBytes && memoryQuota?.hasHeadroom(with: added) ?? true
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

/// The space that temporary files leave free on their file system for other programs.
enum DiskReserve {
    /// Whether a file in `folder` may grow by `count` bytes. `false` if statvfs(3) fails.
    static func allows(_ count: Int, in folder: String) -> Bool {
        var facts = statvfs()
        guard statvfs(folder, &facts) == 0 else { return false }
        let unit = Int(clamping: facts.f_frsize)
        return allows(
            count, free: Int(clamping: facts.f_bavail).scaled(by: unit),
            size: Int(clamping: facts.f_blocks).scaled(by: unit))
    }

    /// Whether a file may grow by `count` bytes, on a file system of `size` bytes of which `free` are free.
    static func allows(_ count: Int, free: Int, size: Int) -> Bool {
        free - count >= min(size / EngineLimits.diskReserveShare, EngineLimits.diskReserveBytes)
    }
}

extension Int {
    fileprivate func scaled(by factor: Int) -> Int {
        let (product, isTooLarge) = multipliedReportingOverflow(by: factor)
        return isTooLarge ? .max : product
    }
}
