internal import WatchwordCore
internal import WatchwordProtocol

/// An option of the tables `[oauth."URL"]`. The parser and the manual page both use `OAuthOption.all`.
struct OAuthOption: Sendable {
    let name: String
    /// A description of the value, as a noun phrase.
    let type: String
    /// A valid example value.
    let example: String
    /// The default as it would be written in the file; `nil` if the option is not set by default.
    let defaultText: String?
    /// The description in the manual page.
    let summary: String
    private let change: Change

    /// Changes a rule, or throws the problem of the value.
    typealias Change =
        @Sendable (_ option: OAuthOption, _ value: TOMLValue, _ draft: inout OAuthDraft) throws(Refusal) -> Void

    init(
        _ name: String, _ type: String, example: String, defaultText: String? = nil, _ summary: String,
        change: @escaping Change
    ) {
        (self.name, self.type, self.example, self.defaultText) = (name, type, example, defaultText)
        (self.summary, self.change) = (summary, change)
    }

    func apply(_ value: TOMLValue, to draft: inout OAuthDraft) throws(Refusal) { try change(self, value, &draft) }

    /// The problem of a value that is not valid; `found` describes it.
    func unexpected(_ found: String) -> Refusal {
        Refusal("expected \(type), found \(found); for example, write: \(name) = \(example)")
    }

    /// The problem of a value that is not valid, and that messages do not quote.
    var invalid: Refusal { Refusal("expected \(type); for example, write: \(name) = \(example)") }
}

/// A rule that is being read, and the file with its secret.
struct OAuthDraft {
    var rule: OAuthRule
    var secretFile: String?
}

extension OAuthOption {
    static func text(
        _ name: String, _ type: String, example: String, _ summary: String,
        set: @escaping @Sendable (OAuthOption, _ text: String, inout OAuthDraft) throws(Refusal) -> Void
    ) -> OAuthOption {
        OAuthOption(name, type, example: "\"\(example)\"", summary) { option, value, draft throws(Refusal) in
            guard case .string(let text) = value else { throw option.unexpected(value.kindText) }
            try set(option, text, &draft)
        }
    }

    static func flag(
        _ name: String, _ place: any WritableKeyPath<OAuthRule, Bool> & Sendable, _ summary: String
    ) -> OAuthOption {
        let isOn = OAuthRule(resource: "")[keyPath: place]
        return OAuthOption(
            name, "true or false", example: "\(!isOn)", defaultText: "\(isOn)", summary
        ) { option, value, draft throws(Refusal) in
            guard case .boolean(let isOn) = value else { throw option.unexpected(value.kindText) }
            draft.rule[keyPath: place] = isOn
        }
    }
}
