/// The parsers of untrusted bytes, each with a property that must hold for all inputs.
enum FuzzTarget: String, CaseIterable {
    case frames, messages, challenges, digest, redirects, certificates, keyring, configuration, front

    /// Checks the property for one input.
    ///
    /// - Throws: `Broken` if it does not hold.
    func check(_ bytes: [UInt8]) throws {
        switch self {
        case .frames: try checkFrames(bytes)
        case .messages: try checkMessages(bytes)
        case .challenges: try checkChallenges(bytes)
        case .digest: try checkDigest(bytes)
        case .redirects: try checkRedirects(bytes)
        case .certificates: try checkCertificates(bytes)
        case .keyring: try checkKeyring(bytes)
        case .configuration: try checkConfiguration(bytes)
        case .front: try checkFront(bytes)
        }
    }
}

/// A violated property.
struct Broken: Error, CustomStringConvertible {
    let description: String
}

/// Throws `Broken` with the description `property` unless `condition` is true.
func hold(_ condition: Bool, _ property: @autoclosure () -> String) throws {
    if !condition { throw Broken(description: property()) }
}

extension [UInt8] {
    /// Splits the bytes into pieces of one to seven bytes.
    func pieces(seed: UInt8) -> [[UInt8]] {
        var state = UInt32(seed) &+ 1
        var pieces: [[UInt8]] = []
        var start = 0
        while start < count {
            state = state &* 1_664_525 &+ 1_013_904_223
            let end = Swift.min(count, start + 1 + Int(state >> 24) % 7)
            pieces.append(Array(self[start..<end]))
            start = end
        }
        return pieces
    }

    /// The lines of the text.
    var lines: [String] {
        split(separator: 0x0A, omittingEmptySubsequences: false).map { String(decoding: $0, as: UTF8.self) }
    }
}

extension String {
    var hasControlCharacters: Bool { utf8.contains { $0 < 0x20 || $0 == 0x7F } }
}
