// Writes results directly to the output buffer; jansson is used only for parsing.

func append(_ text: StaticString, to output: inout [UInt8]) {
    output.append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
}

func append(_ number: Int, to output: inout [UInt8]) { output.append(contentsOf: String(number).utf8) }

private let digits = Array("0123456789abcdef".utf8)

func appendQuoted(_ text: UnsafeRawBufferPointer, to output: inout [UInt8]) {
    output.append(UInt8(ascii: "\""))
    var plain = 0
    for (index, byte) in text.enumerated() where byte < 32 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") {
        output.append(contentsOf: UnsafeRawBufferPointer(rebasing: text[plain..<index]))
        plain = index + 1
        if byte < 32 {
            output += Array("\\u00".utf8) + [digits[Int(byte >> 4)], digits[Int(byte & 15)]]
        } else {
            output += [UInt8(ascii: "\\"), byte]
        }
    }
    output.append(contentsOf: UnsafeRawBufferPointer(rebasing: text[plain...]))
    output.append(UInt8(ascii: "\""))
}

private let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

func base64(_ data: [UInt8]) -> [UInt8] {
    var text: [UInt8] = []
    for start in stride(from: 0, to: data.count, by: 3) {
        let part = Array(data[start..<min(start + 3, data.count)])
        let bits = part.enumerated().reduce(0) { $0 | Int($1.element) << (16 - 8 * $1.offset) }
        for place in 0..<4 {
            text.append(place <= part.count ? alphabet[bits >> (18 - 6 * place) & 63] : UInt8(ascii: "="))
        }
    }
    return text
}
