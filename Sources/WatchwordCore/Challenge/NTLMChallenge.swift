internal import WatchwordProtocol

/// The parts of a server's NTLM challenge, the type 2 message, that decide which response libcurl makes
/// (MS-NLMP section 2.2.1.2; libcurl 7.88.1, lib/vauth/ntlm.c).
///
/// Without target information libcurl sends an LM and an NTLMv1 response, which rainbow tables reverse. The message is therefore
/// read before libcurl answers it, at least as strictly as libcurl reads it.
public struct NTLMChallenge: Sendable, Equatable {
    /// The target information (AV_PAIR list) as it stands in the message.
    public let targetInformation: [UInt8]

    /// Why a message must not be answered.
    public enum Problem: Error, Sendable, Equatable, CaseIterable {
        /// Not base64, not a type 2 message, cut off, or with lengths that contradict each other.
        case malformed
        /// Larger than `Limits.ntlmChallengeBytes`.
        case tooLong
        /// The flag for extended session security is missing.
        case noExtendedSecurity
        /// The flag for target information or the list itself is missing.
        case noTargetInformation
    }

    /// Reads the base64 text that follows `NTLM` in a header field.
    /// - Throws: the first `Problem` of the message.
    public init(base64 text: UnsafeRawBufferPointer) throws(Problem) {
        guard text.count <= Base64.encodedCount(Limits.ntlmChallengeBytes) else { throw .tooLong }
        guard let bytes = Base64.decode(text) else { throw .malformed }
        try self.init(bytes)
    }

    /// Reads the message itself.
    /// - Throws: the first `Problem` of the message.
    public init(_ message: [UInt8]) throws(Problem) {
        guard message.count <= Limits.ntlmChallengeBytes else { throw .tooLong }
        guard message.starts(with: Array("NTLMSSP\0".utf8) + [2, 0, 0, 0]) else { throw .malformed }
        // The flags stand behind the fields of the target's name, the target information behind eight reserved bytes.
        guard let flags = message.number(at: 20, bytes: 4), message.count >= 32 else { throw .malformed }
        guard flags & Self.extendedSecurity != 0 else { throw .noExtendedSecurity }
        guard flags & Self.targetInformation != 0 else { throw .noTargetInformation }
        guard let length = message.number(at: 40, bytes: 2), let start = message.number(at: 44, bytes: 4) else {
            throw .malformed
        }
        guard length > 0 else { throw .noTargetInformation }
        guard start >= 48, start + length <= message.count else { throw .malformed }
        targetInformation = Array(message[start..<(start + length)])
        guard Self.isWellFormed(targetInformation) else { throw .malformed }
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
    /// The little-endian number at `index`; `nil` beyond the end.
    fileprivate func number(at index: Int, bytes count: Int) -> Int? {
        guard index + count <= self.count else { return nil }
        return self[index..<(index + count)].reversed().reduce(0) { $0 << 8 | Int($1) }
    }
}
