import ArgumentParser
import Synchronization

/// The value of a repeatable option such as `-d`, with its position. Data arguments are joined with `&`, in the order of the
/// command.
struct DataArgument: Sendable, Equatable {
    enum Kind: Sendable {
        /// `@FILE` is replaced by the content of the file without its line ends, `@-` by standard input.
        case text
        /// Like `text`, but line ends are preserved.
        case binary
        /// The text itself, without special handling of `@`.
        case raw
        case urlEncoded
        /// Like `urlEncoded`, but `+content` is added unchanged.
        case query
    }

    let kind: Kind
    let text: String
    /// The position among all values of this type, in the order of the command.
    let position: Int

    /// The last assigned position. ArgumentParser stores values by option, so their order across options is lost.
    private static let positions = Atomic(0)

    static func make(_ kind: Kind) -> @Sendable (String) -> DataArgument {
        { text in
            let position = positions.wrappingAdd(1, ordering: .relaxed).newValue
            return DataArgument(kind: kind, text: text, position: position)
        }
    }

    static func joined(_ arguments: [DataArgument]) throws -> RequestContent? {
        guard !arguments.isEmpty else { return nil }
        var content = RequestContent(contentType: "application/x-www-form-urlencoded")
        for (index, argument) in arguments.sorted(by: { $0.position < $1.position }).enumerated() {
            if index > 0 { content.append("&".utf8) }
            try argument.append(to: &content)
        }
        return content
    }

    private func append(to content: inout RequestContent) throws {
        let file = text.hasPrefix("@") && kind != .raw ? String(text.dropFirst()) : nil
        switch (kind, file) {
        case (.query, _) where text.hasPrefix("+"): content.append(text.dropFirst().utf8)
        case (.urlEncoded, _), (.query, _): content.append(try encoded().utf8)
        case (.text, let file?):
            content.append(try InputFile.content(of: file).filter { $0 != 0x0A && $0 != 0x0D })
        case (.binary, let file?): try content.append(file: file)
        case (_, _): content.append(text.utf8)
        }
    }

    /// Encodes the forms of `--data-urlencode` (curl(1)): `content`, `=content`, `name=content`, `@file`, `name@file`.
    private func encoded() throws -> String {
        guard let index = text.firstIndex(where: { $0 == "=" || $0 == "@" }) else {
            return Self.formEncoded(text.utf8)
        }
        let (name, value) = (text[..<index], String(text[text.index(after: index)...]))
        let content = text[index] == "@" ? try InputFile.content(of: value) : Array(value.utf8)
        return (name.isEmpty ? "" : "\(name)=") + Self.formEncoded(content)
    }

    /// Percent-encodes `bytes`, with a plus sign for each space, as in forms.
    private static func formEncoded(_ bytes: some Sequence<UInt8>) -> String {
        bytes.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false).map { percentEncoded($0) }
            .joined(separator: "+")
    }

    /// Percent-encodes all but the unreserved characters of RFC 3986 section 2.3.
    static func percentEncoded(_ bytes: some Sequence<UInt8>) -> String {
        var result: [UInt8] = []
        for byte in bytes {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                result.append(byte)
            default:
                let digits = Array("0123456789ABCDEF".utf8)
                result += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: result, as: UTF8.self)
    }
}
