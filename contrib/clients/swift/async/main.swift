import Foundation
import WatchwordAsync
import WatchwordClient

do {
    let file = ProcessInfo.processInfo.environment["LOGIN_FILE"] ?? "/dev/tty"
    let broker = try await AsyncWatchword()
    // All URLs are fetched at the same time, on one connection.
    let pages = CommandLine.arguments.dropFirst().map { url in
        Task { try await broker.fetch(url) { $0.previousFailureCount == 0 ? .login(file: file) : .cancel } }
    }
    for page in pages { FileHandle.standardOutput.write(Data(try await page.value.body)) }
} catch {
    FileHandle.standardError.write(Data("\(error)\n".utf8))
    exit(1)
}
