internal import Glibc
internal import WatchwordProtocol

/// Copies records of rotated files of the audit log into a smaller file.
enum AuditCopy {
    private static let bufferBytes = 64 << 10
    /// Records are shorter. Longer lines are damaged, and not copied.
    private static let longestLine = 16 << 10

    /// Copies the records of all files (open descriptors), the oldest first, without those that exceed their share of `budget` bytes.
    /// - Parameter keepsNewest: whether the newest record is copied in any case.
    /// - Returns: an error number; 0 after success.
    static func copy(_ files: [Int32], to target: Int32, budget: Int, keepsNewest: Bool) -> Int32 {
        // A full disk is reported before any work.
        let error = posix_fallocate(target, 0, off_t(max(budget, 1)))
        guard error == 0, ftruncate(target, 0) == 0 else { return error == 0 ? errno : error }
        var shares = AuditShares()
        var count = 0
        for file in files {
            let error = readLines(of: file) { line in
                shares.add(AuditEvent.share(ofLine: line), line.count)
                count += 1
                return 0
            }
            guard error == 0 else { return error }
        }
        shares.divide(budget)
        var output: [UInt8] = []
        for file in files {
            let error = readLines(of: file) { line in
                count -= 1
                let isExcess = shares.removes(AuditEvent.share(ofLine: line), line.count)
                if isExcess, !(keepsNewest && count == 0) { return 0 }
                output += line
                return output.count < bufferBytes ? 0 : write(&output, to: target)
            }
            guard error == 0 else { return error }
        }
        return write(&output, to: target)
    }

    /// Calls `body` for each complete line, with its line end, from the beginning of the file, until it returns an error number.
    /// - Returns: an error number; 0 after success.
    private static func readLines(of file: Int32, _ body: (ArraySlice<UInt8>) -> Int32) -> Int32 {
        var buffer = [UInt8](repeating: 0, count: bufferBytes)
        var (offset, held) = (off_t(0), 0)
        while true {
            let count = pread(file, &buffer[held], buffer.count - held, offset)
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { return count == 0 ? 0 : errno }
            offset += off_t(count)
            let end = held + count
            var start = 0
            while let last = buffer[start..<end].firstIndex(of: UInt8(ascii: "\n")) {
                let line = buffer[start...last]
                start = last + 1
                guard line.count <= longestLine else { continue }
                let error = body(line)
                guard error == 0 else { return error }
            }
            held = end - start <= longestLine ? end - start : 0
            buffer.replaceSubrange(0..<held, with: Array(buffer[(end - held)..<end]))
        }
    }

    private static func write(_ bytes: inout [UInt8], to target: Int32) -> Int32 {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(target, $0.baseAddress, $0.count) }
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { return count == 0 ? ENOSPC : errno }
            rest = rest.dropFirst(count)
        }
        bytes = []
        return 0
    }
}
