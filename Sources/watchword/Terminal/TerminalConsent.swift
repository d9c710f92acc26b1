import JSONText
import WatchwordClient
import WatchwordProtocol

/// Asks at the terminal whether a program may use a stored credential (`auth/confirm`).
struct TerminalConsent {
    let interrupt: Int32

    /// Returns the result of the request; `nil` if the question was withdrawn or the user interrupted it.
    func ask(_ request: IncomingChallenge, at terminal: borrowing Terminal) -> JSON? {
        let params = request.params
        terminal.show(Self.introduction(params))
        let allowed = (params["allows"]?.elements ?? []).compactMap { $0.string.flatMap(Consent.init(rawValue:)) }
        let words = allowed.filter { $0 != .no }.map(\.rawValue)
        let answer = terminal.choose("Allow it?", among: words, interrupt: interrupt, of: request)
        return answer.map { ["allow": .string($0)] }
    }

    private static func introduction(_ params: JSON) -> String {
        let user = params["user"]?.string.map { " as \($0.shortened)" } ?? ""
        let place = StoredSource.words(params["source"]?.string) ?? "from the session"
        var lines = [
            "",
            RequesterText.sentence(params)
                + "  It wants to use the login \(place) for \(SpaceText.site(params))\(user).",
        ]
        if let note = SpaceText.longHostNote(params) { lines.append(note) }
        if let realm = SpaceText.realm(params) {
            lines.append("  The \(SpaceText.isProxy(params) ? "proxy" : "server") says: \"\(realm)\"")
        }
        lines.append(strength(params))
        return lines.joined(separator: "\n") + "\n"
    }

    /// Returns how reliably the program is identified (SECURITY-RULES G5).
    private static func strength(_ params: JSON) -> String {
        let script = params["subject"]?["script"]
        return switch params["subject"]?["strength"]?.string {
        case "strong": "  Verified: no other program can use this name."
        case "weak" where script != nil:
            "  Other programs of yours can claim to be this script. Allow it only if you have just started it."
        case "weak": "  Other programs of yours can imitate this one. Allow it only if you have just started it."
        case _ where script != nil:
            "  The script can be changed, or be another one. Allow it only if you have just started it."
        default:
            "  The actual program is unknown: it can run other programs' code. Allow it only if you have just started it."
        }
    }
}

/// Descriptions of the requesting program, safe for a terminal.
enum RequesterText {
    /// The subject of the program.
    static func subject(_ params: JSON) -> String {
        (params["subject"]?["id"] ?? params["requester"]?["subject"])?.string?.shortened(to: 300) ?? "unknown"
    }

    /// Returns a heading for a question, including the line end.
    static func sentence(_ params: JSON) -> String {
        let requester = params["requester"]
        let name = requester?["name"]?.string?.shortened ?? "a program"
        let subject = subject(params)
        let script = requester?["script"]?["path"]?.string.map { ", script \($0.shortened(to: 300))" } ?? ""
        let pid = requester?["pid"]?.integer.map { ", process \($0)" } ?? ""
        let far = requester?["restricted"]?.boolean == true ? ", from a container or another machine" : ""
        return "Request from \(name) (\(subject)\(script)\(pid)\(far)):\n"
    }
}
