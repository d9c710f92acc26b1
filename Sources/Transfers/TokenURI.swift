internal import COpenSSL
internal import WatchwordCore
internal import WatchwordProtocol

/// An object on a PKCS#11 token (RFC 7512), spelt in one way only, whatever way it was given in.
struct TokenURI {
    /// In the order in which they are written; with those of its token first.
    private static let names = ["manufacturer", "model", "serial", "token", "id", "object"]

    /// Without `type`.
    private let path: String
    private let token: TokenName
    private let module: TokenModule

    /// - Throws: `TransferFailure` with cause `clientCertificateUnreadable`.
    init(_ uri: String, module path: String?) throws(TransferFailure) {
        let parts = uri.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts[0].hasPrefix("pkcs11:") else { throw Self.unreadable("It is no such URI.") }
        var values: [String: [UInt8]] = [:]
        for attribute in parts[0].dropFirst("pkcs11:".count).split(separator: ";") {
            let (name, value) = try Self.attribute(attribute)
            guard values.updateValue(value, forKey: name) == nil else {
                throw Self.unreadable("It names \(name) twice.")
            }
        }
        for attribute in parts.dropFirst().joined().split(separator: "&") { throw Self.refusal(ofQuery: attribute) }
        guard values["token"] != nil || values["serial"] != nil else { throw Self.unreadable("It names no token.") }
        let spelt = Self.names.compactMap { name in values[name].map { (name: name, value: Self.encoded($0)) } }
        self.path = "pkcs11:" + spelt.map { "\($0.name)=\($0.value)" }.joined(separator: ";")
        token = TokenName(values.filter { $0.key != "id" && $0.key != "object" })
        module = TokenModule.at(path ?? TokenModule.standard)
    }

    /// - Throws: `TransferFailure` with cause `clientCertificateUnreadable`.
    func certificate() throws(TransferFailure) -> OpaquePointer {
        try module.use { (engine, _) throws(TransferFailure) in
            guard let certificate = watchword_token_certificate(engine, "\(path);type=cert") else {
                throw Self.unreadable("There is no certificate, or no such token.")
            }
            return certificate
        }
    }

    /// - Throws: `TransferFailure` with cause `clientCertificateUnreadable`, `clientKeyPassphraseWrong` or
    ///   `tokenPINNotTried`.
    func key(_ pin: Secret?) throws(TransferFailure) -> OpaquePointer {
        // Without a PIN the engine would ask for one at the terminal.
        guard let pin, !pin.isEmpty else { throw LoadedCertificate.wrongPassphrase }
        return try module.use { (engine, tokens) throws(TransferFailure) in
            let pins = tokens.pins
            // A module is logged in once, and would take every other PIN from then on, under every name of the token.
            if let right = pins[token]?.right, right != pin { throw LoadedCertificate.wrongPassphrase }
            for (other, known) in pins where other.mayBeThat(of: token) {
                guard known.right == nil || known.right == pin else {
                    throw Self.unreadable("This PIN cannot be checked: the token is in use under other attributes.")
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
                for one in meant { tokens.tries[one.identity]?.noteRight() }
                return key
            }
            guard Self.isPINRefused else { throw Self.unreadable("There is no private key.") }
            tokens.pins[token] = TokenModule.Pins(tokens: identities, wrong: pin)
            for one in meant { tokens.tries[one.identity, default: PINTries()].noteWrong(one.flags) }
            throw LoadedCertificate.wrongPassphrase
        }
    }

    /// Where a URI fits several tokens, all of them have to allow a try: the engine chooses.
    private static func checkTries(
        of meant: [PresentToken], _ tokens: inout TokenModule.Tokens
    ) throws(TransferFailure) {
        guard !meant.isEmpty else { throw unreadable("There is no such token.") }
        for one in meant {
            let objection = tokens.tries[one.identity, default: PINTries()].objection(one.flags)
            if let objection { throw LoadedCertificate.failure(text(of: objection), .tokenPINNotTried) }
        }
    }

    private static func text(of objection: PINTries.Objection) -> String {
        let remedy = "log in to the token with another program (for example pkcs11-tool --login --test)"
        return switch objection {
        case .locked: "the PIN was not tried: the token is locked; unlock it with the program that came with it"
        case .finalTry: "the PIN was not tried: one more wrong PIN would lock the token; \(remedy)"
        case .tooMany:
            "the PIN was not tried: the token was given too many wrong PINs in a row (limit "
                + "\(Limits.tokenPINTries)) and may lock itself; \(remedy), and restart the broker"
        }
    }

    /// One of CKR_PIN_INCORRECT, CKR_PIN_INVALID, CKR_PIN_LEN_RANGE, CKR_PIN_EXPIRED, CKR_PIN_LOCKED is in OpenSSL's queue.
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
        guard !name.hasPrefix("pin-") else { throw unreadable("It holds a PIN.") }
        guard sides.count == 2, names.contains(name) || name == "type", let value = decoded(sides[1]) else {
            throw unreadable("Its attribute \(name.shortened) is none that counts here, or is written wrongly.")
        }
        guard name == "id" || (String(validating: value, as: UTF8.self) != nil && !value.contains(0)) else {
            throw unreadable("Its attribute \(name) is no text.")
        }
        return (name, value)
    }

    private static func refusal(ofQuery attribute: Substring) -> TransferFailure {
        let name = attribute.prefix { $0 != "=" }
        return switch name {
        case "module-path", "module-name":
            unreadable("It holds \(name): which module is loaded is not for a fetch to say.")
        case "pin-value", "pin-source": unreadable("It holds a PIN.")
        default: unreadable("Nothing may follow the question mark.")
        }
    }

    private static func unreadable(_ reason: String) -> TransferFailure {
        LoadedCertificate.failure(
            "The token's URI gives no client certificate. \(reason)", .clientCertificateUnreadable)
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

    /// Only letters and digits are left as they are.
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

/// The attributes by which a token is called, by name.
struct TokenName: Hashable {
    private let values: [String: [UInt8]]

    init(_ values: [String: [UInt8]]) { self.values = values.filter { $0.key != "type" } }

    /// Everything that `other` says is said here, too.
    func hasAll(of other: TokenName) -> Bool { other.values.allSatisfy { values[$0] == $1 } }

    /// Nothing that both say is different.
    func mayBeThat(of other: TokenName) -> Bool {
        values.allSatisfy { name, value in other.values[name].map { $0 == value } ?? true }
    }
}
