internal import Glibc

/// A field value is opaque bytes (RFC 9110 section 5.5), which are usually UTF-8. Each byte that is not is *marked*: it becomes
/// the private character U+10FF00 plus the byte. The bytes of such a character are marked too if they were received, so that
/// every text gives back the bytes that it was made of.
///
/// A marked text is compared, split and passed on like any other. It is written to the wire as its `headerBytes`, and shown to
/// people and clients as its `readable` text.
extension String {
    /// Decodes a part of a header section.
    public init(header bytes: UnsafeRawBufferPointer) {
        // A fast path, because decoding that validates is generic code.
        if bytes.allSatisfy({ $0 < 0x80 }) {
            self.init(decoding: bytes, as: UTF8.self)
        } else {
            self.init(marking: bytes)
        }
    }

    private init(marking bytes: UnsafeRawBufferPointer) {
        var (text, rest, position) = (UnicodeScalarView(), bytes.makeIterator(), 0)
        var parser = Unicode.UTF8.ForwardParser()
        func mark(_ count: Int) {
            text += bytes[position..<position + count].map { Unicode.Scalar(0x10_FF00 + UInt32($0))! }
            position += count
        }
        while true {
            switch parser.parseScalar(from: &rest) {
            case .valid(let encoded):
                let scalar = Unicode.UTF8.decode(encoded)
                guard scalar.value < 0x10_FF80 else {
                    mark(encoded.count)
                    continue
                }
                text.append(scalar)
                position += encoded.count
            case .error(let length): mark(length)
            case .emptyInput:
                self.init(text)
                return
            }
        }
    }

    /// Whether the text contains marked bytes.
    package var isMarked: Bool {
        withBytes { bytes in
            // Nearly all texts are without such a byte.
            guard let start = bytes.baseAddress, memchr(start, 0xF4, bytes.count) != nil else { return false }
            return bytes.indices.contains(where: bytes.isMark)
        }
    }

    /// The bytes of which the text was made.
    public var headerBytes: [UInt8] {
        withBytes { bytes in
            [UInt8](unsafeUninitializedCapacity: bytes.count) { buffer, count in
                for byte in HeaderBytes(bytes) {
                    buffer[count] = byte
                    count += 1
                }
            }
        }
    }

    /// The number of `headerBytes`.
    package var headerByteCount: Int { isMarked ? headerBytes.count : utf8.count }

    /// The text for people and clients: all bytes of a marked text as ISO 8859-1.
    public var readable: String {
        guard isMarked else { return self }
        let bytes = headerBytes
        return String(validating: bytes, as: UTF8.self)
            ?? String(UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    }

    /// The text for a URL, in which a marked byte is percent-encoded.
    package var percentEncodingMarks: String {
        guard isMarked else { return self }
        return unicodeScalars.reduce(into: "") { text, scalar in
            if scalar.value < 0x10_FF80 {
                text.unicodeScalars.append(scalar)
            } else {
                text += "%" + String(scalar.value & 0xFF, radix: 16, uppercase: true)
            }
        }
    }

    /// A text of another source as a part of a header section: its private characters do not stand for marked bytes.
    package var asHeader: String {
        isMarked ? withBytes { String(marking: UnsafeRawBufferPointer($0)) } : self
    }
}

/// The bytes of a text, with one for each mark.
package struct HeaderBytes: Sequence, IteratorProtocol {
    private let text: UnsafeBufferPointer<UInt8>
    private var position = 0

    package init(_ text: UnsafeBufferPointer<UInt8>) { self.text = text }

    package mutating func next() -> UInt8? {
        guard position < text.count else { return nil }
        guard text.isMark(at: position) else {
            position += 1
            return text[position - 1]
        }
        position += 4
        return 0x80 | (text[position - 2] & 1) << 6 | text[position - 1] & 0x3F
    }
}

extension UnsafeBufferPointer<UInt8> {
    /// Whether U+10FF80 to U+10FFFF, in UTF-8 F4 8F BE 80 to F4 8F BF BF, is at `index`.
    fileprivate func isMark(at index: Int) -> Bool {
        self[index] == 0xF4 && self[index + 1] == 0x8F && self[index + 2] >= 0xBE
    }
}

extension ExactText {
    /// The text for people, keyrings and clients; see `String.readable`.
    public var readable: ExactText { ExactText(string.readable) }
}

extension SecretPart {
    /// A part of a header section, with the bytes that were received.
    package static func header(_ text: String) -> SecretPart { text.isMarked ? .bytes(text.headerBytes) : .text(text) }
}
