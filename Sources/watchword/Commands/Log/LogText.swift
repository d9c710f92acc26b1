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
        /// A member of the record after these words; empty if it is missing.
        func text(_ words: String, _ member: String) -> String {
            event[member]?.string.map { words + $0.shortened } ?? ""
        }
        let (site, user, source) = (site(event), text(" as ", "user"), source(event))
        let login = "a login for \(site)\(user)"
        let (place, reason) = (text(" in the ", "source"), text(": ", "reason"))
        let scope = event["origin"]?.string.map { " for \(DisplayURL.origin($0))" } ?? ""
        let program = event["program"]?.string.map { " of \"\($0.shortened)\"" } ?? ""
        let subject = (event["subject"]?.string ?? "?").shortened(to: 300)
        let (action, count) = ((event["action"]?.string ?? "?").shortened, event["count"]?.integer)
        switch event["kind"]?.string {
        case "credentialUsed": return "used \(login)\(source)"
        case "credentialRefused": return "was refused by \(site)\(user)\(source)"
        case "certificateUsed": return "presented a client certificate to \(site)\(source)"
        case "certificateRefused": return "presented a client certificate that \(site) refused\(source)"
        case "trustAccepted": return "accepted the certificate of \(site)\(persistence(event))\(source)"
        case "challengeAsked":
            let asked = event["by"]?.string == "agent" ? "caused a question to \(who(event["agent"]))" : "was asked"
            return "\(asked) about \(site)"
        case "challengeAnswered": return "got the answer \"\(action)\" about \(site), \(answerer(event))"
        case "challengeUnanswered": return "got no answer about \(site)\(reason)"
        case "consentAsked": return "wants to use \(login)\(source); \(who(event["agent"])) was asked"
        case "consentAnswered": return "\(consent(event)) \(login)\(source)\(consenter(event))"
        case "promptAsked": return "showed a prompt\(program) through \(who(event["agent"]))"
        case "promptAnswered":
            let agent = event["agent"].map { ", from \(who($0))" } ?? ""
            return "\(promptAnswer(event)) to its prompt\(program)\(agent)\(reason)"
        case "grantRevoked": return "revoked \(counted(count ?? 0, "grant"))"
        case "promptsStopped": return "stopped the questions of \(subject)"
        case "promptsResumed": return "resumed the questions of \(subject)"
        case "credentialStored": return "stored \(login)\(place)"
        case "credentialForgotten": return "forgot \(login)\(place)"
        case "credentialDefaultChanged": return "changed the default login for \(site)\(user)\(place)"
        case "credentialHandedOut": return "received the secret of \(login)\(source)"
        case "sessionCleared":
            return "cleared the session\(scope)\(count.map { ", \(counted($0, "login"))" } ?? "")\(reason)"
        case "locked": return "locked the broker"
        case "unlocked": return "unlocked the broker"
        case "denied": return "was denied\(scope)\(reason)"
        case "frontRequest":
            return "\(reason.isEmpty ? "sent" : "was refused") \(action) through a front\(scope)\(reason)"
        case "eventsLost": return "could not write \(counted(count ?? 0, "event")) to this log"
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

    private static func persistence(_ event: JSON) -> String {
        switch event["persistence"]?.string {
        case "forSession": " for the session"
        case "permanent": " permanently"
        default: " for one fetch"
        }
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

    private static func promptAnswer(_ event: JSON) -> String {
        switch event["action"]?.string {
        case "answer": "got an answer"
        case "allow": "got the answer \"allow\""
        case "cancel": "got the answer \"cancel\""
        default: "got no answer"
        }
    }

}
