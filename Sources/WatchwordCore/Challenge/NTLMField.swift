/// An NTLM element of a header line, found as libcurl 7.88.1 finds it (`Curl_http_input_auth`).
///
/// libcurl ignores quotes, and treats everything between `NTLM` and the end of the line as the message. A parser that
/// follows RFC 9110 would miss elements that libcurl answers.
public enum NTLMField: Equatable, Sendable {
    /// `NTLM` alone: the server asks for a login, or has refused one.
    case bare
    /// A type 2 message that may be answered.
    case challenge
    /// A message that must not be answered.
    case unusable(NTLMChallenge.Problem)

    /// Returns the elements of `line`, in order.
    /// - Parameter line: the line from libcurl, with or without its line end.
    /// - Parameter name: the name of the field, with the colon.
    public static func elements(of line: UnsafeRawBufferPointer, named name: StaticString) -> [NTLMField] {
        let prefix = UnsafeRawBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount)
        guard line.startsIgnoringASCIICase(with: prefix) else { return [] }
        var rest = line[prefix.count...].drop(while: \.isBlank).prefix { $0 != 0x0D && $0 != 0x0A && $0 != 0 }
        var elements: [NTLMField] = []
        while !rest.isEmpty {
            if let element = element(at: rest) { elements.append(element) }
            rest = rest.drop { $0 != UInt8(ascii: ",") }.dropFirst().drop(while: \.isBlank)
        }
        return elements
    }

    private static func element(at rest: Slice<UnsafeRawBufferPointer>) -> NTLMField? {
        let scheme: StaticString = "NTLM"
        let prefix = UnsafeRawBufferPointer(start: scheme.utf8Start, count: scheme.utf8CodeUnitCount)
        guard UnsafeRawBufferPointer(rebasing: rest).startsIgnoringASCIICase(with: prefix) else { return nil }
        var value = rest.dropFirst(prefix.count)
        guard let separator = value.first else { return .bare }
        guard separator.isBlank || separator == UInt8(ascii: ",") else { return nil }
        value = value.drop(while: \.isBlank)
        // A list of schemes: libcurl treats the rest of the list as an unreadable message, and ignores it.
        if value.first == UInt8(ascii: ",") { return nil }
        while let last = value.last, last.isBlank { value = value.dropLast() }
        if value.isEmpty { return .bare }
        do throws(NTLMChallenge.Problem) {
            _ = try NTLMChallenge(base64: UnsafeRawBufferPointer(rebasing: value))
            return .challenge
        } catch {
            return .unusable(error)
        }
    }
}

extension UnsafeRawBufferPointer {
    fileprivate func startsIgnoringASCIICase(with prefix: UnsafeRawBufferPointer) -> Bool {
        func small(_ byte: UInt8) -> UInt8 { (0x41...0x5A).contains(byte) ? byte | 0x20 : byte }
        return count >= prefix.count && zip(self, prefix).allSatisfy { small($0) == small($1) }
    }
}

extension UInt8 {
    /// `isspace` in the C locale.
    fileprivate var isBlank: Bool { self == 0x20 || (0x09...0x0D).contains(self) }
}
