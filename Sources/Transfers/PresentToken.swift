internal import COpenSSL
internal import WatchwordCore

/// A token that is plugged in, as its module describes it.
struct PresentToken {
    /// Distinguishes a token from every other token of the same module.
    struct Identity: Hashable {
        fileprivate let bytes: [UInt8]
    }

    let identity: Identity
    let flags: PINTries.Flags
    /// The token's attributes by their names in a URI (RFC 7512), without padding.
    private let attributes: [String: [UInt8]]

    init(_ info: watchword_token_info) {
        func text<Field>(_ field: Field) -> [UInt8] {
            var bytes = withUnsafeBytes(of: field) { Array($0) }
            while bytes.last == UInt8(ascii: " ") || bytes.last == 0 { bytes.removeLast() }
            return bytes
        }
        attributes = [
            "token": text(info.label), "manufacturer": text(info.manufacturer), "model": text(info.model),
            "serial": text(info.serial),
        ]
        identity = Identity(bytes: withUnsafeBytes(of: info) { Array($0.prefix(96)) })
        var flags = PINTries.Flags()
        flags.isCountLow = info.flags & watchword_token_pin_count_low != 0
        flags.isFinalTry = info.flags & watchword_token_pin_final_try != 0
        flags.isLocked = info.flags & watchword_token_pin_locked != 0
        self.flags = flags
    }

    func isNamed(by name: TokenName) -> Bool { TokenName(attributes).hasAll(of: name) }

    /// The tokens of a module; empty if the module does not list them.
    static func all(of module: UnsafePointer<watchword_token_module>) -> [PresentToken] {
        var tokens: [PresentToken] = []
        withUnsafeMutablePointer(to: &tokens) { tokens in
            watchword_token_each(
                module,
                { info, tokens in
                    guard let info, let tokens else { return }
                    tokens.assumingMemoryBound(to: [PresentToken].self).pointee.append(PresentToken(info.pointee))
                }, tokens)
        }
        return tokens
    }
}
