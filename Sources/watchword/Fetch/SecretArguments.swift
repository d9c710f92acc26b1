import Synchronization
import WatchwordProtocol

/// Extracts secrets from argv, which other users can read (proc(5), cmdline), and overwrites them there: the values of `-u`
/// and similar options, the data to send (`HiddenText`), and the user information and query of URLs.
enum SecretArguments {
    /// The options whose values are extracted.
    enum Option: CaseIterable {
        case user, proxyUser, proxy, certificate, key, passphrase, bearerToken

        /// The names in curl.
        var names: (short: UInt8?, long: String) {
            switch self {
            case .user: (UInt8(ascii: "u"), "--user")
            case .proxyUser: (UInt8(ascii: "U"), "--proxy-user")
            case .proxy: (UInt8(ascii: "x"), "--proxy")
            // The value may contain a passphrase, or in a URI a PIN (RFC 7512).
            case .certificate: (UInt8(ascii: "E"), "--cert")
            case .key: (nil, "--key")
            case .passphrase: (nil, "--pass")
            case .bearerToken: (nil, "--oauth2-bearer")
            }
        }
    }

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
                UnsafeMutableRawBufferPointer(start: argument, count: length(argument))
            }
        }
        let (texts, taken) = take(from: arguments)
        storage.withLock { $0 = taken }
        return texts
    }

    /// Extracts the secrets from `arguments`, and overwrites them there.
    static func take(from arguments: [UnsafeMutableRawBufferPointer]) -> (texts: [String], taken: Taken) {
        var (taken, awaited, areOptions) = (Taken(), Option?.none, true)
        var dataOption: HiddenText?
        var awaitsValue = false
        var previous: UnsafeMutableRawBufferPointer?
        let texts = arguments.flatMap { bytes in
            defer { previous = bytes }
            if let option = awaited {
                awaited = nil
                take(bytes, for: option, &taken)
                return [placeholder]
            }
            if let option = dataOption {
                dataOption = nil
                return [option.text(of: bytes)]
            }
            if awaitsValue {
                awaitsValue = false
                let isURL = previous?.elementsEqual("--url".utf8) ?? false
                return [withoutUserInfo(bytes, isURL: isURL, &taken)]
            }
            if areOptions, previous?.starts(with: "--js".utf8) ?? false, let text = HiddenText.jsonData(bytes) {
                return [text]
            }
            if bytes.elementsEqual("--".utf8) { areOptions = false }
            if areOptions, let texts = joined(bytes, &taken) { return texts }
            if areOptions { awaited = option(asking: bytes) }
            if areOptions && awaited == nil { dataOption = HiddenText.option(asking: bytes) }
            awaitsValue = areOptions && awaited == nil && dataOption == nil && takesValue(bytes)
            let isURL = !areOptions || bytes.first != UInt8(ascii: "-")
            return [withoutUserInfo(bytes, isURL: isURL, &taken)]
        }
        return (texts, taken)
    }

    /// The letters of options that take a value. The rest of an argument after such a letter is the value.
    private static let lettersWithValue = Set(
        CurlOption.all.compactMap { $0.takesValue ? $0.short?.asciiValue : nil })

    /// Returns the arguments for the parser if `bytes` contains an option and its value; `nil` for anything else.
    private static func joined(_ bytes: UnsafeMutableRawBufferPointer, _ taken: inout Taken) -> [String]? {
        for option in Option.allCases {
            let prefix = Array("\(option.names.long)=".utf8)
            guard bytes.count > prefix.count, bytes.starts(with: prefix) else { continue }
            take(UnsafeMutableRawBufferPointer(rebasing: bytes[prefix.count...]), for: option, &taken)
            return ["\(option.names.long)=\(placeholder)"]
        }
        if let texts = HiddenText.joined(bytes) { return texts }
        let prefix = "--url="
        if bytes.starts(with: prefix.utf8) {
            let url = UnsafeMutableRawBufferPointer(rebasing: bytes[prefix.utf8.count...])
            return [prefix + withoutUserInfo(url, isURL: true, &taken)]
        }
        guard let index = letterWithValue(bytes), index + 1 < bytes.count else { return nil }
        let (letters, value) = (String(decoding: bytes[...index], as: UTF8.self), bytes[(index + 1)...])
        guard let option = Option.allCases.first(where: { $0.names.short == bytes[index] }) else {
            let rest = UnsafeMutableRawBufferPointer(rebasing: value)
            return [letters, HiddenText(letter: bytes[index])?.text(of: rest) ?? String(decoding: rest, as: UTF8.self)]
        }
        take(UnsafeMutableRawBufferPointer(rebasing: value), for: option, &taken)
        return [letters, placeholder]
    }

    /// Whether the next argument is the value of this option, even if it begins with a dash.
    private static func takesValue(_ bytes: UnsafeMutableRawBufferPointer) -> Bool {
        if let index = letterWithValue(bytes) { return index + 1 == bytes.count }
        return bytes.starts(with: "--".utf8)
            && CurlOption.named(String(decoding: bytes, as: UTF8.self))?.takesValue == true
    }

    /// Returns the index of the first letter that takes a value in a group of letters, such as `-Lu`.
    static func letterWithValue(_ bytes: UnsafeMutableRawBufferPointer) -> Int? {
        let dash = UInt8(ascii: "-")
        guard bytes.count >= 2, bytes[0] == dash, bytes[1] != dash else { return nil }
        return bytes.indices.dropFirst().first { lettersWithValue.contains(bytes[$0]) }
    }

    /// Returns the argument without user information. Overwrites its secrets.
    /// - Parameter isURL: whether the argument is a URL to fetch. Only the user information of such a URL is a login.
    private static func withoutUserInfo(
        _ bytes: UnsafeMutableRawBufferPointer, isURL: Bool, _ taken: inout Taken
    ) -> String {
        let (url, userInfo) = URLText.split(Secret(copying: UnsafeRawBufferPointer(bytes)))
        if let userInfo {
            if isURL { taken.userInfos.append((url, userInfo)) }
            overwrite(bytes)
        } else {
            HiddenText.hideQuery(of: bytes, isURL: isURL)  // guard: argument-query
        }
        return url
    }

    /// Returns the option whose value is the next argument. The letter of the option may end a group, as in `-Lu`.
    private static func option(asking bytes: UnsafeMutableRawBufferPointer) -> Option? {
        let letter = letterWithValue(bytes).flatMap { $0 + 1 == bytes.count ? bytes[$0] : nil }
        return Option.allCases.first { option in
            let (short, long) = option.names
            return bytes.elementsEqual(long.utf8) || (letter != nil && short == letter)
        }
    }

    private static func take(_ value: UnsafeMutableRawBufferPointer, for option: Option, _ taken: inout Taken) {
        taken.values[option] = Secret(copying: UnsafeRawBufferPointer(value))
        overwrite(value)
    }

    static func overwrite(_ bytes: UnsafeMutableRawBufferPointer) {
        bytes.copyBytes(from: repeatElement(UInt8(ascii: "x"), count: bytes.count))
    }

    private static func length(_ text: UnsafeMutablePointer<CChar>) -> Int {
        var count = 0
        while text[count] != 0 { count += 1 }
        return count
    }
}
