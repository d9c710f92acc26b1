import ArgumentParser
import Glibc

/// The body of a request: what is in memory and what is in files, in order. What is in files is read when it is sent.
struct RequestContent: Equatable {
    enum Part: Equatable {
        case bytes([UInt8])
        case file(path: String, sizeBytes: Int)
        /// Of unknown length: standard input, a pipe. It can be read once.
        case stream(descriptor: Int32)
    }

    var parts: [Part] = []
    /// What its options make of it; a header field of the command comes before it.
    var contentType: String?

    /// `nil` while nobody knows.
    var sizeBytes: Int? {
        var sum = 0
        for part in parts {
            switch part {
            case .bytes(let bytes): sum += bytes.count
            case .file(_, let size): sum += size
            case .stream: return nil
            }
        }
        return sum
    }

    /// Whether it can be sent a second time.
    var isRepeatable: Bool { !parts.contains { if case .stream = $0 { true } else { false } } }

    /// Files that have a size stay where they are; anything else is read now. Those of proc(5) say that they are empty.
    mutating func append(file path: String) throws {
        if let size = try InputFile.size(path), size > 0 {
            parts.append(.file(path: path, sizeBytes: size))
        } else {
            append(try InputFile.content(of: path))
        }
    }

    mutating func append(_ bytes: some Collection<UInt8>) {
        if case .bytes(let before)? = parts.last {
            parts[parts.count - 1] = .bytes(before + bytes)
        } else {
            parts.append(.bytes(Array(bytes)))
        }
    }

    /// The whole of it, for a message.
    func bytes() throws -> [UInt8] {
        let reader = ContentReader(self)
        var result: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = try buffer.withUnsafeMutableBytes { try reader.read(into: $0) }
            if count == 0 { return result }
            result += buffer[..<count]
        }
    }
}

/// Reads a body from its start to its end, one part after the other.
final class ContentReader {
    private var parts: ArraySlice<RequestContent.Part>
    /// What was read of the first of `parts`.
    private var offset = 0
    private var descriptor: Int32 = -1

    init(_ content: RequestContent) { parts = content.parts[...] }

    deinit { if descriptor >= 0 { InputFile.close(descriptor) } }

    /// Where the next bytes come from, if it is something that can take its time.
    var stream: Int32? { if case .stream(let descriptor)? = parts.first { descriptor } else { nil } }

    /// 0 at the end.
    func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
        while let part = parts.first {
            let count = try read(part, into: buffer)
            offset += count
            if count > 0 { return count }
            try finish(part)
        }
        return 0
    }

    private func read(_ part: RequestContent.Part, into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
        switch part {
        case .bytes(let bytes):
            let count = min(buffer.count, bytes.count - offset)
            buffer.copyBytes(from: bytes[offset..<offset + count])
            return count
        case .file(let path, let size):
            if descriptor < 0 { descriptor = try InputFile.open(path) }
            let room = UnsafeMutableRawBufferPointer(rebasing: buffer[..<min(buffer.count, size - offset)])
            return room.isEmpty ? 0 : try InputFile.read(descriptor, into: room, path)
        case .stream(let descriptor):
            return try InputFile.read(
                descriptor, into: buffer, descriptor == STDIN_FILENO ? "standard input" : "what is to be sent")
        }
    }

    private func finish(_ part: RequestContent.Part) throws {
        if case .file(let path, let size) = part, offset < size {
            throw InputFile.failure("The file \(path) has become shorter while it was sent.")
        }
        if descriptor >= 0 { InputFile.close(descriptor) }
        (descriptor, offset) = (-1, 0)
        parts = parts.dropFirst()
    }
}
