import Glibc
import Synchronization
import WatchwordProtocol

/// Extracts secrets from argv, which other users can read (proc(5), cmdline), and overwrites them there: the values of `-u`
/// and similar options, the data to send, and the user information and query of URLs.
enum SecretArguments {
    /// The options whose values are extracted, by their names in curl.
    enum Option: String, CaseIterable {
        case user, proxy, key
        case proxyUser = "proxy-user"
        /// The value may contain a passphrase, or in a URI a PIN (RFC 7512).
        case certificate = "cert"
        case passphrase = "pass"
        case bearerToken = "oauth2-bearer"
    }

    /// The meaning of a value or an argument.
    private enum Meaning {
        case secret(Option)
        /// Text that may be a secret. It is passed on, but overwritten in the argument list, unless it is the name of a file
        /// after `@`.
        case data(takesFiles: Bool)
        /// Text that is neither a secret nor a URL.
        case file
        case url
        /// Any other text. It may be a URL, but not one to fetch.
        case other
    }

    /// Includes curl options that this program only explains, because users type them with secrets anyway.
    private static let meanings: [String: Meaning] = {
        let names: [(Meaning, String)] = [
            (.data(takesFiles: true), "data data-ascii data-binary data-urlencode header proxy-header json"),
            (
                .data(takesFiles: false),
                "data-raw form form-string url-query cookie tlspassword proxy-tlspassword proxy-pass"
            ),
            (.file, "upload-file output user-agent dump-header write-out"), (.url, "url"),
        ]
        let secrets = Option.allCases.map { ($0.rawValue, Meaning.secret($0)) }
        let others = names.flatMap { meaning, names in names.split(separator: " ").map { (String($0), meaning) } }
        return Dictionary(secrets + others) { first, _ in first }
    }()

    struct Taken: Sendable {
        /// The last value of each option.
        fileprivate(set) var values: [Option: Secret] = [:]
        /// The user information of URLs, each with the remaining URL, in the order of the command.
        fileprivate(set) var userInfos: [(url: String, userInfo: Secret)] = []

        var isEmpty: Bool { values.isEmpty && userInfos.isEmpty }

        subscript(_ option: Option) -> Secret? { values[option] }

        /// Returns the user information that was extracted from `url`. `number` selects one of several equal URLs, from 0.
        func userInfo(_ url: String, number: Int = 0) -> Secret? {
            let found = userInfos.filter { $0.url == url }
            return number < found.count ? found[number].userInfo : nil
        }
    }

    /// The text that replaces a secret in the arguments for the parser.
    static let placeholder = "taken"

    private static let storage = Mutex(Taken())

    static var taken: Taken { storage.withLock { $0 } }

    /// Extracts the secrets of this process. Returns the arguments without the program name and without secrets.
    static func take() -> [String] {
        let arguments = (1..<max(1, Int(CommandLine.argc))).compactMap { index in
            CommandLine.unsafeArgv[Int(index)].map { argument in
                UnsafeMutableRawBufferPointer(start: argument, count: strlen(argument))
            }
        }
        let (texts, taken) = take(from: arguments)
        storage.withLock { $0 = taken }
        return texts
    }

    /// Extracts the secrets from `arguments`, and overwrites them there.
    static func take(from arguments: [UnsafeMutableRawBufferPointer]) -> (texts: [String], taken: Taken) {
        var (taken, awaited, areOptions) = (Taken(), Meaning?.none, true)
        var previous: UnsafeMutableRawBufferPointer?
        let texts = arguments.flatMap { bytes in
            defer { previous = bytes }
            if let meaning = awaited {
                awaited = nil
                return [text(of: bytes, meaning, &taken)]
            }
            // curl's --json takes a value, which ours does not. The command is refused later.
            if areOptions, previous?.starts(with: "--js".utf8) ?? false, isJSON(bytes.first) {
                return [text(of: bytes, .data(takesFiles: true), &taken)]
            }
            if bytes.elementsEqual("--".utf8) { areOptions = false }
            guard areOptions, bytes.first == UInt8(ascii: "-") else { return [text(of: bytes, .url, &taken)] }
            if let texts = joined(bytes, &taken) { return texts }
            awaited = meaning(asking: bytes)
            return [text(of: bytes, .other, &taken)]
        }
        return (texts, taken)
    }

    /// Returns the arguments for the parser if `bytes` contains an option and its value; `nil` for anything else.
    private static func joined(_ bytes: UnsafeMutableRawBufferPointer, _ taken: inout Taken) -> [String]? {
        if let index = letterWithValue(bytes) {
            let (letters, value) = (bytes[...index], UnsafeMutableRawBufferPointer(rebasing: bytes[(index + 1)...]))
            guard !value.isEmpty, let option = option(letter: bytes[index]) else { return nil }
            return [
                String(decoding: letters, as: UTF8.self), text(of: value, meanings[option.long] ?? .other, &taken),
            ]
        }
        guard bytes.starts(with: "--".utf8), let equals = bytes.firstIndex(of: UInt8(ascii: "=")),
            let meaning = meanings[String(decoding: bytes[2..<equals], as: UTF8.self)]
        else { return nil }
        let value = UnsafeMutableRawBufferPointer(rebasing: bytes[(equals + 1)...])
        if value.isEmpty { return nil }
        return [String(decoding: bytes[...equals], as: UTF8.self) + text(of: value, meaning, &taken)]
    }

    /// Returns the meaning of the next argument if it is the value of this option, even if it begins with a dash.
    private static func meaning(asking bytes: UnsafeMutableRawBufferPointer) -> Meaning? {
        let option =
            if let index = letterWithValue(bytes) {
                option(letter: bytes[index])
            } else if bytes.starts(with: "--".utf8) {
                CurlOption.named(String(decoding: bytes, as: UTF8.self))
            } else { CurlOption?.none }
        guard let option, option.takesValue else { return nil }
        return meanings[option.long] ?? .other
    }

    /// Returns the index of the first letter that takes a value in a group of letters, such as `-Lu`.
    private static func letterWithValue(_ bytes: UnsafeMutableRawBufferPointer) -> Int? {
        let dash = UInt8(ascii: "-")
        guard bytes.count >= 2, bytes[0] == dash, bytes[1] != dash else { return nil }
        return bytes.indices.dropFirst().first { option(letter: bytes[$0])?.takesValue ?? false }
    }

    private static func option(letter: UInt8) -> CurlOption? {
        CurlOption.named(short: Character(Unicode.Scalar(letter)))
    }

    /// Returns the text for the parser. Overwrites what may be secret in the argument list.
    private static func text(
        of bytes: UnsafeMutableRawBufferPointer, _ meaning: Meaning, _ taken: inout Taken
    ) -> String {
        let isURL: Bool
        switch meaning {
        case .secret(let option):
            taken.values[option] = Secret(copying: UnsafeRawBufferPointer(bytes))
            overwrite(bytes)
            return placeholder
        case .data(let takesFiles):
            let text = String(decoding: bytes, as: UTF8.self)
            if !(takesFiles && bytes.first == UInt8(ascii: "@")) { hide(bytes) }  // guard: argument-text
            return text
        case .file: return String(decoding: bytes, as: UTF8.self)
        case .url: isURL = true
        case .other: isURL = false
        }
        let (url, userInfo) = URLText.split(Secret(copying: UnsafeRawBufferPointer(bytes)))
        guard let userInfo else {
            hideQuery(of: bytes, isURL: isURL)  // guard: argument-query
            return url
        }
        // Only the user information of a URL to fetch is a login.
        if isURL { taken.userInfos.append((url, userInfo)) }
        overwrite(bytes)
        return url
    }

    /// Hides the query of a URL, which may contain tokens. With `isURL`, the URL may lack its scheme.
    private static func hideQuery(of bytes: UnsafeMutableRawBufferPointer, isURL: Bool) {
        guard isURL || bytes.firstRange(of: "://".utf8) != nil, let mark = bytes.firstIndex(of: UInt8(ascii: "?"))
        else { return }
        hide(UnsafeMutableRawBufferPointer(rebasing: bytes[(mark + 1)...]))
    }

    /// Overwrites a value. A value that is not UTF-8 remains, because the command is refused because of it.
    private static func hide(_ bytes: UnsafeMutableRawBufferPointer) {
        if String(validating: bytes, as: UTF8.self) != nil { overwrite(bytes) }
    }

    private static func overwrite(_ bytes: UnsafeMutableRawBufferPointer) {
        bytes.copyBytes(from: repeatElement(UInt8(ascii: "x"), count: bytes.count))
    }

    /// Whether an argument after `--json` that begins with this byte is curl's DATA.
    static func isJSON(_ first: UInt8?) -> Bool { first.map { "{[\"@".utf8.contains($0) } ?? false }
}
