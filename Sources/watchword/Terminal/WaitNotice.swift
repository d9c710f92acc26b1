import Glibc
import JSONText
import WatchwordProtocol

/// What the helper says while a fetch waits for another one: of a question always, of a login that is under way only with `-v`,
/// for that takes a moment.
enum WaitNotice {
    /// Whether somebody looks at standard error.
    static var hasReader: Bool { isatty(STDERR_FILENO) == 1 }

    /// - Parameter params: of `fetch/waiting`.
    static func text(_ params: JSON, isVerbose: Bool) -> String? {
        let realm = SpaceText.realm(params).map { " (\($0))" } ?? ""
        let place = SpaceText.site(params) + realm
        switch params["for"]?.string {
        case "question": return "waiting for the answer to another program's question, to log in to \(place)"
        case "trial" where isVerbose: return "waiting for another fetch to log in at \(place)"
        default: return nil
        }
    }
}
