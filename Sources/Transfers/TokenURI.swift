internal import COpenSSL
internal import WatchwordCore
internal import WatchwordProtocol

/// The URI of an object on a PKCS#11 token (RFC 7512), in canonical form.
struct TokenURI {
    /// The attributes in the order of the canonical form: attributes of the token come first.
    private static let names = ["manufacturer", "model", "serial", "token", "id", "object"]

    /// The canonical URI without `type`.
    private let path: String
    private let token: TokenName
    private let module: TokenModule

    /// - Throws: `TransferFailure` with cause `clientCertificateUnreadable`.
    init(_ uri: String, module path: String?) throws(TransferFailure) {
        let parts = uri.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts[0].hasPrefix("pkcs11:") else { throw Self.unreadable("it does not begin with pkcs11:") }
        var values: [String: [UInt8]] = [:]
        for attribute in parts[0].dropFirst("pkcs11:".count).split(separator: ";") {
            let (name, value) = try Self.attribute(attribute)
            guard values.updateValue(value, forKey: name) == nil else {
                throw Self.unreadable("duplicate attribute \(name); remove one")
            }
        }
        for attribute in parts.dropFirst().joined().split(separator: "&") { throw Self.refusal(ofQuery: attribute) }
        guard values["token"] != nil || values["serial"] != nil else {
            throw Self.unreadable("it names no token; add the attribute token or serial")
        }
        let spelt = Self.names.compactMap { name in values[name].map { (name: name, value: Self.encoded($0)) } }
        self.path = "pkcs11:" + spelt.map { "\($0.name)=\($0.value)" }.joined(separator: ";")
        token = TokenName(values.filter { $0.key != "id" && $0.key != "object" })
        module = TokenModule.at(path ?? TokenModule.standard)
    }

    /// - Throws: `TransferFailure` with cause `clientCertificateUnreadable`.
    func certificate() throws(TransferFailure) -> OpaquePointer {
        try module.use { (engine, _) throws(TransferFailure) in
            guard let certificate = watchword_token_certificate(engine, "\(path);type=cert") else {
                throw Self.unreadable("no such token, or no such certificate on it")
            }
            return certificate
        }
    }

    /// - Throws: `TransferFailure` with cause `clientCertificateUnreadable`, `clientKeyPassphraseWrong` or
    ///   `tokenPINNotTried`.
    func key(_ pin: Secret?) throws(TransferFailure) -> OpaquePointer {
        // Without a PIN the engine would prompt at the terminal.
        guard let pin, !pin.isEmpty else { throw LoadedCertificate.wrongPassphrase }
        return try module.use { (engine, tokens) throws(TransferFailure) in
            let pins = tokens.pins
            // A module logs in to a token once, and then accepts any PIN, under every name that matches the token.
            if let right = pins[token]?.right, right != pin { throw LoadedCertificate.wrongPassphrase }
            for (other, known) in pins where other.couldMatch(of: token) {
                guard known.right == nil || known.right == pin else {
                    throw Self.unreadable(
                        "cannot check the PIN: the token is in use under other attributes; use the same attributes")
                }
            }
            if let wrong = pins[token]?.wrong, wrong == pin { throw LoadedCertificate.wrongPassphrase }
            let isLoggedIn = pins[token]?.right != nil
            let meant = tokens.meant(by: token)
            let identities = Set(meant.map(\.identity))
            if !isLoggedIn { try Self.checkTries(of: meant, &tokens) }
            let key = try pin.withTerminatedBytes { text throws(TransferFailure) in
                watchword_token_key(engine, "\(path);type=private", text)
            }
            if let key {
                tokens.pins[token] = TokenModule.Pins(tokens: identities, right: pin)
                for one in meant { tokens.tries[one.identity]?.recordRight() }
                return key
            }
            guard Self.isPINRefused else { throw Self.unreadable("no such private key on the token") }
            tokens.pins[token] = TokenModule.Pins(tokens: identities, wrong: pin)
            for one in meant { tokens.tries[one.identity, default: PINTries()].recordWrong(one.flags) }
            throw LoadedCertificate.wrongPassphrase
        }
    }

    /// Throws if a PIN must not be tried. If the URI matches several tokens, all of them have to allow it, because the engine
    /// chooses one.
    private static func checkTries(
        of meant: [PresentToken], _ tokens: inout TokenModule.Tokens
    ) throws(TransferFailure) {
        guard !meant.isEmpty else { throw unreadable("no such token") }
        for one in meant {
            let reason = tokens.tries[one.identity, default: PINTries()].reasonNotToTry(one.flags)
            if let reason { throw LoadedCertificate.failure(text(of: reason), .tokenPINNotTried) }
        }
    }

    private static func text(of reason: PINTries.NotTriedReason) -> String {
        let remedy = "log in to the token with another program (for example pkcs11-tool --login --test)"
        return switch reason {
        case .locked: "the PIN was not tried: the token is locked; unlock it with its vendor's program"
        case .finalTry: "the PIN was not tried: one more wrong PIN would lock the token; \(remedy)"
        case .tooMany:
            "the PIN was not tried: the token was given too many wrong PINs in a row (limit "
                + "\(Limits.tokenPINTries)) and may lock itself; \(remedy), and restart the broker"
        }
    }

    /// Whether OpenSSL's error queue contains CKR_PIN_INCORRECT, CKR_PIN_INVALID, CKR_PIN_LEN_RANGE, CKR_PIN_EXPIRED or
    /// CKR_PIN_LOCKED. Empties the queue.
    private static var isPINRefused: Bool {
        var isRefused = false
        while case let error = ERR_get_error(), error != 0 {
            if error & 0x8000_0000 == 0, (0xA0...0xA4).contains(error & 0x7F_FFFF) { isRefused = true }
        }
        return isRefused
    }

    private static func attribute(_ text: Substring) throws(TransferFailure) -> (name: String, value: [UInt8]) {
        let sides = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let name = String(sides[0])
        guard !name.hasPrefix("pin-") else { throw unreadable("it contains a PIN; remove it") }
        guard sides.count == 2, names.contains(name) || name == "type", let value = decoded(sides[1]) else {
            throw unreadable("unsupported or malformed attribute \(name.shortened)")
        }
        guard name == "id" || (String(validating: value, as: UTF8.self) != nil && !value.contains(0)) else {
            throw unreadable("attribute \(name) is not valid text")
        }
        return (name, value)
    }

    private static func refusal(ofQuery attribute: Substring) -> TransferFailure {
        let name = attribute.prefix { $0 != "=" }
        return switch name {
        case "module-path", "module-name":
            unreadable("it contains \(name); remove it, and set tokens.module in the configuration")
        case "pin-value", "pin-source": unreadable("it contains a PIN; remove it")
        default: unreadable("unexpected attributes after the question mark; remove them")
        }
    }

    private static func unreadable(_ reason: String) -> TransferFailure {
        LoadedCertificate.failure(
            "cannot use the token URI of the client certificate: \(reason)", .clientCertificateUnreadable)
    }

    private static func decoded(_ text: Substring) -> [UInt8]? {
        var bytes: [UInt8] = []
        var rest = text.utf8
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            let digits = rest.prefix(2)
            guard digits.count == 2, digits.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }),
                let value = UInt8(String(Substring(digits)), radix: 16)
            else { return nil }
            bytes.append(value)
            rest = rest.dropFirst(2)
        }
        return bytes
    }

    /// Percent-encodes all bytes except letters and digits.
    private static func encoded(_ bytes: [UInt8]) -> String {
        var text = ""
        for byte in bytes {
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: text.unicodeScalars.append(Unicode.Scalar(byte))
            default: text += (byte < 16 ? "%0" : "%") + String(byte, radix: 16, uppercase: true)
            }
        }
        return text
    }
}

/// The attributes of a URI that select a token, by name.
struct TokenName: Hashable {
    private let values: [String: [UInt8]]

    init(_ values: [String: [UInt8]]) { self.values = values.filter { $0.key != "type" } }

    /// Whether this contains all attributes of `other`, with the same values.
    func hasAll(of other: TokenName) -> Bool { other.values.allSatisfy { values[$0] == $1 } }

    /// Whether one token could match both names: no common attribute has different values.
    func couldMatch(of other: TokenName) -> Bool {
        values.allSatisfy { name, value in other.values[name].map { $0 == value } ?? true }
    }
}
