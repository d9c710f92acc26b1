import Glibc
import JSONText
import WatchwordProtocol

/// The notice while a fetch waits for another fetch. A wait for a prompt is always reported; a wait for an in-flight login is
/// short, and reported only with `-v`.
enum WaitNotice {
    /// Whether standard error is a terminal.
    static var hasReader: Bool { isatty(STDERR_FILENO) == 1 }

    /// - Parameter params: The parameters of `fetch/waiting`.
    static func text(_ params: JSON, isVerbose: Bool) -> String? {
        let realm = SpaceText.realm(params).map { " (\($0))" } ?? ""
        let place = SpaceText.site(params) + realm
        switch params["for"]?.string {
        case "question": return "waiting for the answer to another program's login prompt for \(place)"
        case "trial" where isVerbose: return "waiting for another fetch to log in to \(place)"
        default: return nil
        }
    }
}
