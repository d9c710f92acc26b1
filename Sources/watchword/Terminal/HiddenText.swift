import WatchwordProtocol

/// An option whose value is handled as text and not as a `Secret`. A value that may be a secret is overwritten in the
/// argument list nevertheless.
struct HiddenText: Equatable {
    /// Whether the value may be a secret.
    let isHidden: Bool
    /// Whether a value that begins with `@` is the name of a file, which is not a secret.
    let takesFiles: Bool

    private static let file = HiddenText(isHidden: false, takesFiles: false)
    private static let data = HiddenText(isHidden: true, takesFiles: true)
    private static let literal = HiddenText(isHidden: true, takesFiles: false)

    private static let letters: [UInt8: HiddenText] = [
        UInt8(ascii: "d"): data, UInt8(ascii: "H"): data, UInt8(ascii: "F"): literal, UInt8(ascii: "b"): literal,
        UInt8(ascii: "T"): file, UInt8(ascii: "o"): file, UInt8(ascii: "A"): file, UInt8(ascii: "D"): file,
        UInt8(ascii: "w"): file,
    ]

    /// Includes curl options that this program only explains, because users type them with secrets anyway.
    private static let names: [String: HiddenText] = [
        "--data": data, "--data-ascii": data, "--data-binary": data, "--data-urlencode": data, "--data-raw": literal,
        "--header": data, "--proxy-header": data, "--form": literal, "--form-string": literal, "--url-query": literal,
        "--cookie": literal, "--tlspassword": literal, "--proxy-tlspassword": literal, "--proxy-pass": literal,
        "--upload-file": file, "--output": file, "--user-agent": file, "--dump-header": file, "--write-out": file,
    ]

    private init(isHidden: Bool, takesFiles: Bool) { (self.isHidden, self.takesFiles) = (isHidden, takesFiles) }

    init?(letter: UInt8) {
        guard let found = Self.letters[letter] else { return nil }
        self = found
    }

    /// Returns the option if its value is the next argument.
    static func option(asking bytes: UnsafeMutableRawBufferPointer) -> HiddenText? {
        if let index = SecretArguments.letterWithValue(bytes) {
            return index + 1 == bytes.count ? HiddenText(letter: bytes[index]) : nil
        }
        return names[String(decoding: bytes, as: UTF8.self)]
    }

    /// Returns `--header=VALUE` as text; `nil` for any other argument.
    static func joined(_ bytes: UnsafeMutableRawBufferPointer) -> [String]? {
        guard bytes.starts(with: "--".utf8), let equals = bytes.firstIndex(of: UInt8(ascii: "=")) else { return nil }
        let name = String(decoding: bytes[..<equals], as: UTF8.self)
        guard let option = names[name] ?? (name == "--json" ? data : nil) else { return nil }
        let value = UnsafeMutableRawBufferPointer(rebasing: bytes[(equals + 1)...])
        return [String(decoding: bytes[...equals], as: UTF8.self) + option.text(of: value)]
    }

    /// Returns the value, and overwrites it in the argument list if it may be a secret.
    func text(of bytes: UnsafeMutableRawBufferPointer) -> String {
        let text = String(decoding: bytes, as: UTF8.self)
        if isHidden, !(takesFiles && bytes.first == UInt8(ascii: "@")) { Self.hide(bytes) }  // guard: argument-text
        return text
    }

    /// Whether an argument after `--json` that begins with this byte is curl's DATA. The option takes no value here.
    static func isJSON(_ first: UInt8?) -> Bool { first.map { "{[\"@".utf8.contains($0) } ?? false }

    /// Returns the DATA of curl's `--json`, and hides it; `nil` for any other argument. The command is refused later.
    static func jsonData(_ bytes: UnsafeMutableRawBufferPointer) -> String? {
        isJSON(bytes.first) ? data.text(of: bytes) : nil
    }

    /// Hides the query of a URL, which may contain tokens. With `isURL`, the URL may lack its scheme.
    static func hideQuery(of bytes: UnsafeMutableRawBufferPointer, isURL: Bool) {
        guard isURL || bytes.firstRange(of: "://".utf8) != nil, let mark = bytes.firstIndex(of: UInt8(ascii: "?"))
        else {
            return
        }
        hide(UnsafeMutableRawBufferPointer(rebasing: bytes[(mark + 1)...]))
    }

    /// Overwrites a value. A value that is not UTF-8 remains, because the command is refused because of it.
    private static func hide(_ bytes: UnsafeMutableRawBufferPointer) {
        if String(validating: bytes, as: UTF8.self) != nil { SecretArguments.overwrite(bytes) }
    }
}
