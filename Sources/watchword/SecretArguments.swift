import Synchronization
import WatchwordProtocol

/// Takes secrets out of the argument list: what follows `-u` and its like, and user information out of URLs. Other users can
/// read the arguments of a process (proc(5), cmdline), so the bytes are overwritten there.
enum SecretArguments {
    /// The options whose values are taken away.
    enum Option: CaseIterable {
        case user, proxyUser, proxy, certificate, key, passphrase, bearerToken

        /// As curl calls them.
        var names: (short: UInt8?, long: String) {
            switch self {
            case .user: (UInt8(ascii: "u"), "--user")
            case .proxyUser: (UInt8(ascii: "U"), "--proxy-user")
            case .proxy: (UInt8(ascii: "x"), "--proxy")
            // With a passphrase behind it, or a PIN in it (RFC 7512).
            case .certificate: (UInt8(ascii: "E"), "--cert")
            case .key: (nil, "--key")
            case .passphrase: (nil, "--pass")
            case .bearerToken: (nil, "--oauth2-bearer")
            }
        }
    }

    struct Taken: Sendable {
        /// The last value of each option, whole.
        fileprivate(set) var values: [Option: Secret] = [:]
        /// What stood before `@` in the URL.
        fileprivate(set) var userInfo: Secret?

        subscript(_ option: Option) -> Secret? { values[option] }
    }

    /// Stands where a secret was.
    static let placeholder = "taken"

    private static let storage = Mutex(Taken())

    static var taken: Taken { storage.withLock { $0 } }

    /// The arguments without the program's name and without secrets.
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

    /// The same for a list that is given.
    static func take(from arguments: [UnsafeMutableRawBufferPointer]) -> (texts: [String], taken: Taken) {
        var (taken, awaited) = (Taken(), Option?.none)
        let texts = arguments.map { bytes in
            if let option = awaited {
                awaited = nil
                keep(bytes, for: option, &taken)
                return placeholder
            }
            if let text = joined(bytes, &taken) { return text }
            awaited = option(asking: bytes)
            return withoutUserInfo(bytes, &taken)
        }
        return (texts, taken)
    }

    /// An option with its value in one argument; `nil` for anything else.
    private static func joined(_ bytes: UnsafeMutableRawBufferPointer, _ taken: inout Taken) -> String? {
        for option in Option.allCases {
            let (short, long) = option.names
            let prefixes = [Array("\(long)=".utf8), short.map { [UInt8(ascii: "-"), $0] }].compactMap(\.self)
            guard let prefix = prefixes.first(where: { bytes.count > $0.count && bytes.starts(with: $0) }) else {
                continue
            }
            keep(UnsafeMutableRawBufferPointer(rebasing: bytes[prefix.count...]), for: option, &taken)
            return "\(long)=\(placeholder)"
        }
        return nil
    }

    private static func withoutUserInfo(_ bytes: UnsafeMutableRawBufferPointer, _ taken: inout Taken) -> String {
        let (url, userInfo) = URLText.split(Secret(copying: UnsafeRawBufferPointer(bytes)))
        if let userInfo {
            taken.userInfo = userInfo
            overwrite(bytes)
        }
        return url
    }

    /// The option whose value is the next argument. One letter can stand at the end of several, as in `-Lu`.
    private static func option(asking bytes: UnsafeMutableRawBufferPointer) -> Option? {
        let dash = UInt8(ascii: "-")
        let isGroup = bytes.count >= 2 && bytes[0] == dash && bytes[1] != dash
        return Option.allCases.first { option in
            let (short, long) = option.names
            return bytes.elementsEqual(long.utf8) || (isGroup && short != nil && bytes.last == short)
        }
    }

    private static func keep(_ value: UnsafeMutableRawBufferPointer, for option: Option, _ taken: inout Taken) {
        taken.values[option] = Secret(copying: UnsafeRawBufferPointer(value))
        overwrite(value)
    }

    private static func overwrite(_ bytes: UnsafeMutableRawBufferPointer) {
        bytes.copyBytes(from: repeatElement(UInt8(ascii: "x"), count: bytes.count))
    }

    private static func length(_ text: UnsafeMutablePointer<CChar>) -> Int {
        var count = 0
        while text[count] != 0 { count += 1 }
        return count
    }
}
