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
