public import JSONText

/// `credential/get`: a credential, with its secret, for a program that logs in by itself, such as git. Off unless the
/// configuration names the program and the host (`credentials.hand-out`).
public struct CredentialGetParams: Sendable, Equatable {
    public var pattern: SpacePattern
    /// `nil` for the default one. Without a domain the user of every domain is meant.
    public var account: Account?
    /// Where on the server it is needed: what was stored for a path is good at and below that.
    public var path: ExactText

    public init(_ json: JSON?) throws(InvalidParams) {
        let members = try Members(json)
        pattern = try SpacePattern(members.required("protectionSpace", members["protectionSpace"]))
        let domain = try members.exactText("domain")
        account = try members.exactText("user").map { Account(user: $0, domain: domain) }
        path = try members.exactText("path") ?? "/"
        guard path.hasPrefix("/") else { throw members.wrong("path", "a path from \"/\" on") }
    }

    public init(pattern: SpacePattern, account: Account?, path: ExactText = "/") {
        self.pattern = pattern
        self.account = account
        self.path = path
    }

    public var json: JSON {
        [
            "protectionSpace": pattern.json, "user": account?.user.json,
            "domain": account?.domain?.json, "path": path.json,
        ]
    }
}
