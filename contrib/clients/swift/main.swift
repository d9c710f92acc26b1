import Foundation
import WatchwordClient

do {
    let file = ProcessInfo.processInfo.environment["LOGIN_FILE"] ?? "/dev/tty"
    let page = try Watchword().fetch(CommandLine.arguments[1]) { challenge in
        challenge.previousFailureCount == 0 ? .login(file: file) : .cancel
    }
    FileHandle.standardOutput.write(Data(page.body))
} catch {
    FileHandle.standardError.write(Data("\(error)\n".utf8))
    exit(1)
}
