extension Secret {
    /// Decodes percent-encoding (RFC 3986 section 2.1). Returns `nil` for a `%` without two hexadecimal digits. The caller owns
    /// `text` and wipes it.
    public init?(percentDecoding text: Slice<UnsafeRawBufferPointer>) {
        var isValid = true
        self.init(capacity: text.count) { block in
            var (count, index) = (0, text.startIndex)
            while index < text.endIndex {
                var byte = text[index]
                index += 1
                if byte == UInt8(ascii: "%") {
                    guard index + 1 < text.endIndex, let high = Hexadecimal.value(of: text[index]),
                        let low = Hexadecimal.value(of: text[index + 1])
                    else {
                        isValid = false
                        return count
                    }
                    byte = high << 4 | low
                    index += 2
                }
                block[count] = byte
                count += 1
            }
            return count
        }
        guard isValid else { return nil }
    }
}
