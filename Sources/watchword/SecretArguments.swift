import Synchronization
import WatchwordProtocol

/// Takes passwords out of the argument list: out of `-u USER:PASSWORD` and out of URLs. Other users can read the arguments of
/// a process (proc(5), cmdline), so the bytes are overwritten there.
enum SecretArguments {
    struct Taken: Sendable {
        /// What followed `-u`: `USER` or `USER:PASSWORD`.
        var user: Secret?
        /// What stood before `@` in the URL.
        var userInfo: Secret?
    }

    /// Stands where a secret was.
    static let placeholder = "taken"

    private static let storage = Mutex(Taken())

    static var taken: Taken { storage.withLock { $0 } }

    /// The arguments without the program's name and without secrets.
    static func take() -> [String] {
        var isUser = false
        return (1..<max(1, Int(CommandLine.argc))).compactMap { index in
            guard let argument = CommandLine.unsafeArgv[Int(index)] else { return nil }
            let bytes = UnsafeMutableRawBufferPointer(start: argument, count: length(argument))
            defer { isUser = !isUser && (bytes.elementsEqual("-u".utf8) || bytes.elementsEqual("--user".utf8)) }
            return text(of: bytes, isUser: isUser)
        }
    }

    private static func text(of bytes: UnsafeMutableRawBufferPointer, isUser: Bool) -> String {
        if isUser {
            keep(bytes, after: 0)
            return placeholder
        }
        for prefix in ["--user=", "-u"] where bytes.count > prefix.utf8.count && bytes.starts(with: prefix.utf8) {
            keep(bytes, after: prefix.utf8.count)
            return "--user=\(placeholder)"
        }
        let (url, userInfo) = URLText.split(Secret(copying: UnsafeRawBufferPointer(bytes)))
        if let userInfo {
            storage.withLock { $0.userInfo = userInfo }
            bytes.copyBytes(from: repeatElement(UInt8(ascii: "x"), count: bytes.count))
        }
        return url
    }

    private static func keep(_ bytes: UnsafeMutableRawBufferPointer, after prefix: Int) {
        let value = UnsafeMutableRawBufferPointer(rebasing: bytes[prefix...])
        let secret = Secret(copying: UnsafeRawBufferPointer(value))
        storage.withLock { $0.user = secret }
        value.copyBytes(from: repeatElement(UInt8(ascii: "x"), count: value.count))
    }

    private static func length(_ text: UnsafeMutablePointer<CChar>) -> Int {
        var count = 0
        while text[count] != 0 { count += 1 }
        return count
    }
}
