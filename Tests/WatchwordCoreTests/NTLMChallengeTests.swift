import Testing
import WatchwordCore
import WatchwordProtocol

/// SECURITY-RULES N8: what libcurl may answer.
@Suite struct NTLMChallengeTests {
    /// A CHALLENGE_MESSAGE (MS-NLMP section 2.2.1.2).
    static func message(
        flags: UInt32 = 0x0088_8205, information: [UInt8] = [2, 0, 2, 0, 0x44, 0, 0, 0, 0, 0], length: Int? = nil,
        start: Int = 48
    ) -> [UInt8] {
        func bytes(_ value: Int, _ count: Int) -> [UInt8] { (0..<count).map { UInt8(value >> (8 * $0) & 0xFF) } }
        let length = bytes(length ?? information.count, 2)
        return Array("NTLMSSP\0".utf8) + [2, 0, 0, 0] + bytes(0, 8) + bytes(Int(flags), 4) + [1, 2, 3, 4, 5, 6, 7, 8]
            + bytes(0, 8) + length + length + bytes(start, 4) + information
    }

    static func text(_ message: [UInt8]) -> String { message.withUnsafeBytes { Base64.encode($0) } }

    private func problem(_ message: [UInt8]) -> NTLMChallenge.Problem? {
        do throws(NTLMChallenge.Problem) {
            _ = try NTLMChallenge(message)
            return nil
        } catch {
            return error
        }
    }

    private func elements(_ line: String, named name: StaticString = "WWW-Authenticate:") -> [NTLMField] {
        Array(line.utf8).withUnsafeBytes { NTLMField.elements(of: $0, named: name) }
    }

    @Test func aChallengeForVersion2IsRead() throws {
        let challenge = try NTLMChallenge(Self.message())
        #expect(challenge.targetInformation == [2, 0, 2, 0, 0x44, 0, 0, 0, 0, 0])
        #expect(problem(Self.message(information: [0, 0, 0, 0])) == nil, "an empty list is a list")
        #expect(
            problem(Self.message(information: Array(repeating: 7, count: 8) + [0, 0, 0, 0], start: 48)) == .malformed)
    }

    @Test("Rule N8: a challenge that leads to a weaker response is recognised")
    func aChallengeThatLeadsToAWeakerResponseIsRecognised() {
        #expect(problem(Self.message(flags: 0x0080_8205)) == .noExtendedSecurity)
        #expect(problem(Self.message(flags: 0x0000_8205)) == .noExtendedSecurity)
    }

    /// libcurl answers these with NTLMv2, too: see NTLMAttemptOnTheWireTests.
    @Test func theTargetInformationMayBeMissing() throws {
        for message in [
            Self.message(flags: 0x0008_8205), Self.message(flags: 0x0008_8205, length: 65_535),
            Self.message(flags: 0x0008_8205, information: [7]), Self.message(information: []),
            Self.message(length: 0, start: 0), Array(Self.message(flags: 0x0008_8205).prefix(32)),
        ] {
            #expect(problem(message) == nil)
            #expect(try NTLMChallenge(message).targetInformation.isEmpty)
        }
    }

    @Test func aMessageIsReadWholeOrNotAtAll() {
        let whole = Self.message()
        for count in whole.indices { #expect(problem(Array(whole.prefix(count))) == .malformed, "\(count) bytes") }
        for (length, start) in [(11, 48), (10, 49), (10, 47), (10, 0), (65_535, 48), (10, 0xFFFF_FFFF), (4, 48)] {
            #expect(problem(Self.message(length: length, start: start)) == .malformed, "\(length) at \(start)")
        }
        for index in 0..<12 {
            var changed = whole
            changed[index] ^= 1
            #expect(problem(changed) == .malformed, "byte \(index)")
        }
    }

    @Test func theSizeOfAChallengeIsLimited() {
        let room = Limits.ntlmChallengeBytes - 48
        func list(_ count: Int) -> [UInt8] {
            let text = count - 8
            return [1, 0, UInt8(text & 0xFF), UInt8(text >> 8)] + Array(repeating: 65, count: text) + [0, 0, 0, 0]
        }
        #expect(problem(Self.message(information: list(room))) == nil)
        #expect(problem(Self.message(information: list(room + 1))) == .tooLong)
        #expect(elements("WWW-Authenticate: NTLM " + String(repeating: "A", count: 4096)) == [.unusable(.tooLong)])
    }

    @Test func elementsAreFoundAsLibcurlFindsThem() {
        let good = Self.text(Self.message())
        #expect(elements("WWW-Authenticate: NTLM \(good)\r\n") == [.challenge])
        #expect(elements("www-authenticate:\t ntlm\t\(good) \r\n") == [.challenge])
        for blanks in ["\r", " \r\r ", "\u{0B}", "\u{0C}", "\t\r"] {
            #expect(
                elements("WWW-Authenticate:\(blanks)NTLM \(good)\r\n") == [.challenge],
                "libcurl skips these bytes first")
        }
        #expect(elements("WWW-Authenticate:\r\n").isEmpty)
        #expect(elements("WWW-Authenticate: NTLM\r\n") == [.bare])
        #expect(elements("WWW-Authenticate:NTLM  ") == [.bare])
        #expect(
            elements("WWW-Authenticate: Basic realm=\"x, NTLM \(good)") == [.challenge], "quotes mean nothing to it")
        #expect(elements("WWW-Authenticate: Negotiate, NTLM") == [.bare])
        #expect(elements("WWW-Authenticate: NTLM, NTLM") == [.bare])
        #expect(elements("WWW-Authenticate: NTLM, Basic realm=\"x\"").isEmpty)
        #expect(elements("WWW-Authenticate: NTLMish \(good)").isEmpty)
        #expect(elements("WWW-Authenticate : NTLM \(good)").isEmpty)
        #expect(elements(" NTLM \(good)").isEmpty)
        #expect(elements("Proxy-Authenticate: NTLM \(good)").isEmpty)
        #expect(elements("Proxy-Authenticate: NTLM \(good)", named: "Proxy-Authenticate:") == [.challenge])
        #expect(elements("WWW-Authenticate: NTLM \(good)\rX") == [.challenge], "libcurl ends the value at the first CR")
        for bad in ["!!!", "TlRM", good + "=", good + " x", String(good.dropLast()), "\(good), Basic"] {
            #expect(elements("WWW-Authenticate: NTLM \(bad)") == [.unusable(.malformed)], "\(bad)")
        }
    }

    @Test func aLineSplitAtEveryByteIsNeverAnswerable() {
        let line = "WWW-Authenticate: NTLM \(Self.text(Self.message()))"
        for count in 0..<line.utf8.count {
            let part = String(line.prefix(count))
            #expect(!elements(part).contains(.challenge), "\(part)")
        }
    }
}
