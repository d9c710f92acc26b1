import JSONText
import WatchwordProtocol

/// Formats a record as a line for people: time, program, action, server, user. Safe for a terminal.
enum LogText {
    static func line(_ event: JSON) -> String {
        let time = event["time"]?.string.flatMap(UTCTime.milliseconds).map { LocalTime.text($0) } ?? "?"
        return "\(time)  \(who(event["client"]))  \(what(event))"
    }

    /// Returns the program as named by the kernel, followed by its script, and by the name that it gave itself.
    private static func who(_ client: JSON?) -> String {
        guard let client else { return "the broker" }
        func file(_ member: String) -> String? {
            client[member]?.string.map { String($0.split(separator: "/").last ?? "?").shortened }
        }
        let program = file("executable")
        let script = file("script").map { " \($0)" } ?? ""
        let name = client["name"]?.string?.shortened
        let pid = client["pid"]?.integer ?? 0
        let own = name.flatMap { program == nil || $0 == program ? nil : " \"\($0)\"" } ?? ""
        return "\(program ?? name ?? "unknown")[\(pid)]\(script)\(own)"
    }

    private static func what(_ event: JSON) -> String {
        let (site, user, source) = (site(event), user(event), source(event))
        switch event["kind"]?.string {
        case "credentialUsed": return "used a login for \(site)\(user)\(source)"
        case "credentialRefused": return "was refused by \(site)\(user)\(source)"
        case "certificateUsed": return "presented a client certificate to \(site)\(source)"
        case "certificateRefused": return "presented a client certificate that \(site) refused\(source)"
        case "trustAccepted": return "accepted the certificate of \(site)\(persistence(event))\(source)"
        case "challengeAsked": return "\(asked(event)) about \(site)"
        case "challengeAnswered":
            return "got the answer \"\((event["action"]?.string ?? "?").shortened)\" about \(site), \(answerer(event))"
        case "challengeUnanswered":
            return "got no answer about \(site)\(reason(event))"
        case "consentAsked":
            return "wants to use a login for \(site)\(user)\(source); \(who(event["agent"])) was asked"
        case "consentAnswered": return "\(consent(event)) a login for \(site)\(user)\(source)\(consenter(event))"
        case "promptAsked": return "showed a prompt\(program(event)) through \(who(event["agent"]))"
        case "promptAnswered":
            let agent = event["agent"].map { ", from \(who($0))" } ?? ""
            return "\(promptAnswer(event)) to its prompt\(program(event))\(agent)\(reason(event))"
        case "grantRevoked": return "revoked \(counted(event["count"]?.integer ?? 0, "grant"))"
        case "promptsStopped": return "stopped the questions of \(subject(event))"
        case "promptsResumed": return "resumed the questions of \(subject(event))"
        case "credentialStored": return "stored a login for \(site)\(user)\(place(event))"
        case "credentialForgotten": return "forgot a login for \(site)\(user)\(place(event))"
        case "credentialDefaultChanged": return "changed the default login for \(site)\(user)\(place(event))"
        case "credentialHandedOut": return "received the secret of a login for \(site)\(user)\(source)"
        case "sessionCleared": return "cleared the session\(scope(event))\(count(event))\(reason(event))"
        case "locked": return "locked the broker"
        case "unlocked": return "unlocked the broker"
        case "denied": return "was denied\(scope(event))\(reason(event))"
        case "frontRequest":
            let method = (event["action"]?.string ?? "?").shortened
            let verb = event["reason"] == nil ? "sent" : "was refused"
            return "\(verb) \(method) through a front\(scope(event))\(reason(event))"
        case "eventsLost": return "could not write \(counted(event["count"]?.integer ?? 0, "event")) to this log"
        case let other: return "caused an event unknown to this version: \((other ?? "?").shortened)"
        }
    }

    private static func site(_ event: JSON) -> String {
        guard event["protectionSpace"] != nil else {
            return event["origin"]?.string.map(DisplayURL.origin) ?? "a server"
        }
        let parts = [SpaceText.realm(event).map { "\"\($0)\"" }, SpaceText.scheme(event)].compactMap(\.self)
        let space = parts.isEmpty ? "" : " (\(parts.joined(separator: ", ")))"
        guard SpaceText.isProxy(event) else { return SpaceText.site(event) + space }
        let way = event["origin"]?.string.map { " on the way to \(DisplayURL.origin($0))" } ?? ""
        return "the \(SpaceText.site(event))\(space)\(way)"
    }

    private static func user(_ event: JSON) -> String { event["user"]?.string.map { " as \($0.shortened)" } ?? "" }

    private static func source(_ event: JSON) -> String {
        let source = event["source"]?.string
        if let words = StoredSource.words(source) { return ", \(words)" }
        return switch source {
        case "explicit": ", which it supplied itself"
        case "url": ", from its URL"
        case "client": ", from its own answer"
        case "agent": ", from an agent's answer"
        case let other?: ", from \(other.shortened)"
        case nil: ""
        }
    }

    private static func subject(_ event: JSON) -> String { (event["subject"]?.string ?? "?").shortened(to: 300) }

    private static func place(_ event: JSON) -> String {
        event["source"]?.string.map { " in the \($0.shortened)" } ?? ""
    }

    private static func persistence(_ event: JSON) -> String {
        switch event["persistence"]?.string {
        case "forSession": " for the session"
        case "permanent": " permanently"
        default: " for one fetch"
        }
    }

    private static func asked(_ event: JSON) -> String {
        event["by"]?.string == "agent" ? "caused a question to \(who(event["agent"]))" : "was asked"
    }

    private static func answerer(_ event: JSON) -> String {
        switch event["by"]?.string {
        case "agent": "from \(who(event["agent"]))"
        case "deadline": "after the deadline"
        default: "from the program itself"
        }
    }

    private static func consent(_ event: JSON) -> String {
        switch event["action"]?.string {
        case "once": "may use, for one fetch,"
        case "session": "may use, for the session,"
        case "always": "may always use"
        default: "may not use"
        }
    }

    private static func consenter(_ event: JSON) -> String {
        switch event["by"]?.string {
        case "agent": "; answered by \(who(event["agent"]))"
        case "deadline": ": not answered in time"
        default: ": no agent answered"
        }
    }

    /// The program of a prompt, which its client has named.
    private static func program(_ event: JSON) -> String {
        event["program"]?.string.map { " of \"\($0.shortened)\"" } ?? ""
    }

    private static func promptAnswer(_ event: JSON) -> String {
        switch event["action"]?.string {
        case "answer": "got an answer"
        case "allow": "got the answer \"allow\""
        case "cancel": "got the answer \"cancel\""
        default: "got no answer"
        }
    }

    private static func scope(_ event: JSON) -> String {
        event["origin"]?.string.map { " for \(DisplayURL.origin($0))" } ?? ""
    }

    private static func count(_ event: JSON) -> String {
        event["count"]?.integer.map { ", \(counted($0, "login"))" } ?? ""
    }

    private static func reason(_ event: JSON) -> String { event["reason"]?.string.map { ": \($0.shortened)" } ?? "" }
}
