internal import WatchwordProtocol

/// The parts of an NTLM challenge (type 2 message) that decide which response libcurl makes (MS-NLMP section 2.2.1.2;
/// libcurl 7.88.1, lib/vauth/ntlm.c).
///
/// Without extended session security libcurl sends an LM and an NTLMv1 response, which can be reversed with rainbow tables;
/// with it, an NTLMv2 response, also if the target information is missing or empty. The message is therefore checked
/// before libcurl answers it, at least as strictly as libcurl parses it.
public struct NTLMChallenge: Sendable, Equatable {
    /// The target information (AV_PAIR list) of the message. Empty if the flag for it is not set: libcurl then ignores the list.
    public let targetInformation: [UInt8]

    /// The reason why a message must not be answered.
    public enum Problem: Error, Sendable, Equatable, CaseIterable {
        /// The message is not base64, not of type 2, truncated, or its lengths are inconsistent.
        case malformed
        /// Larger than `Limits.ntlmChallengeBytes`.
        case tooLong
        /// The flag for extended session security is not set.
        case noExtendedSecurity
    }

    /// Parses the base64 text after `NTLM` in a header field.
    /// - Throws: the first `Problem` of the message.
    public init(base64 text: UnsafeRawBufferPointer) throws(Problem) {
        guard text.count <= Base64.encodedCount(Limits.ntlmChallengeBytes) else { throw .tooLong }
        guard let bytes = Base64.decode(text) else { throw .malformed }
        try self.init(bytes)
    }

    /// Parses the decoded message.
    /// - Throws: the first `Problem` of the message.
    public init(_ message: [UInt8]) throws(Problem) {
        guard message.count <= Limits.ntlmChallengeBytes else { throw .tooLong }
        guard message.starts(with: Array("NTLMSSP\0".utf8) + [2, 0, 0, 0]) else { throw .malformed }
        // The flags follow the fields of the target name, the target information follows eight reserved bytes.
        guard let flags = message.number(at: 20, bytes: 4), message.count >= 32 else { throw .malformed }
        guard flags & Self.extendedSecurity != 0 else { throw .noExtendedSecurity }  // guard: ntlm-extended-security
        guard flags & Self.targetInformation != 0 else {
            targetInformation = []
            return
        }
        guard let length = message.number(at: 40, bytes: 2), let start = message.number(at: 44, bytes: 4),
            length == 0 || start >= 48 && start + length <= message.count
        else { throw .malformed }
        targetInformation = length == 0 ? [] : Array(message[start..<(start + length)])
        guard length == 0 || Self.isWellFormed(targetInformation) else { throw .malformed }
    }

    /// NTLMSSP_NEGOTIATE_EXTENDED_SESSIONSECURITY; libcurl calls it NTLM2_KEY.
    private static let extendedSecurity = 0x0008_0000
    /// NTLMSSP_NEGOTIATE_TARGET_INFO.
    private static let targetInformation = 0x0080_0000

    /// Whether `list` is a sequence of AV_PAIRs up to MsvAvEOL (MS-NLMP section 2.2.2.1).
    private static func isWellFormed(_ list: [UInt8]) -> Bool {
        var index = 0
        while let identifier = list.number(at: index, bytes: 2), let length = list.number(at: index + 2, bytes: 2) {
            if identifier == 0 { return length == 0 }
            index += 4 + length
        }
        return false
    }
}

extension [UInt8] {
    /// Returns the little-endian number at `index`; `nil` beyond the end.
    fileprivate func number(at index: Int, bytes count: Int) -> Int? {
        guard index + count <= self.count else { return nil }
        return self[index..<(index + count)].reversed().reduce(0) { $0 << 8 | Int($1) }
    }
}

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
