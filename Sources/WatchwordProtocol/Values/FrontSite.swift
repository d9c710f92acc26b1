public import JSONText

/// A site behind a front, and the requests that programs may send to it.
public struct FrontSite: ClientValue, Sendable, Equatable {
    /// The URL of the site: `http` or `https`, host and port, without a path.
    public var url: String
    /// Whether each request is recorded, and a login that a program sends itself is dropped.
    public var isRestricted: Bool
    /// Whether the programs of a restricted front use stored credentials only after a consent of their own. Otherwise, opening
    /// the front is the consent.
    public var asksConsent = false
    /// The methods that are allowed, in upper case; `nil` allows all.
    public var methods: [String]?
    /// The paths that are allowed: a path that ends with `/` covers everything below it, another one only itself. `nil`
    /// allows all.
    public var paths: [String]?
    /// The names of request fields that programs may send although the front is limited, besides the usual ones.
    public var fields: [String]?
    /// The number of requests after which the front refuses further ones; `nil` for no limit.
    public var budget: Int?

    /// The value of `consent` that lets an agent ask.
    public static let askingConsent = "ask"

    /// The largest value of `budget`.
    public static let largestBudget = 1_000_000_000

    public init(
        url: String, isRestricted: Bool = false, methods: [String]? = nil, paths: [String]? = nil, budget: Int? = nil
    ) {
        self.url = url
        self.isRestricted = isRestricted
        self.methods = methods
        self.paths = paths
        self.budget = budget
    }

    /// The URL is checked by the broker.
    public init(_ members: Members) throws(InvalidParams) {
        url = try members.required("url", members.string("url"))
        isRestricted = try members.boolean("restricted") ?? false
        let consent = try members.string("consent")
        methods = try Self.strings("methods", "a list of methods in upper case", members, Self.isMethod)
        paths = try Self.strings("paths", "a list of paths, each with a leading slash", members, Self.isPath)
        fields = try Self.strings("fields", "a list of names of fields", members, Self.isField)
        budget = try members.integer("budget", in: 1...Self.largestBudget)
        try members.refuseUnread()
        guard let consent else { return }
        guard consent == Self.askingConsent, isRestricted else {
            throw members.wrong("consent", "\"\(Self.askingConsent)\", together with restricted")
        }
        asksConsent = true
    }

    /// Whether `text` can be an element of `methods`: capital letters and hyphens.
    public static func isMethod(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.count <= 32 && text.utf8.allSatisfy { (0x41...0x5A).contains($0) || $0 == 0x2D }
    }

    /// Whether `text` can be an element of `paths`: it begins with a slash, and has no query, dot segment or percent
    /// sign.
    public static func isPath(_ text: String) -> Bool {
        let segments = text.utf8.split(separator: UInt8(ascii: "/"))
        let dots: [[UInt8]] = [[0x2E], [0x2E, 0x2E]]
        return text.hasPrefix("/") && text.utf8.count <= 1024
            && text.utf8.allSatisfy { (0x21...0x7E).contains($0) && ![0x25, 0x3F, 0x23, 0x5C].contains($0) }
            && !segments.contains { dots.contains(Array($0)) }
    }

    /// Whether `text` can be an element of `fields` (RFC 9110 section 5.1).
    public static func isField(_ text: String) -> Bool { text.isToken && text.utf8.count <= 64 }

    private static func strings(
        _ name: String, _ expected: String, _ members: Members, _ isValid: (String) -> Bool
    ) throws(InvalidParams) -> [String]? {
        guard let elements = try members.elements(name) else { return nil }
        var texts: [String] = []
        for element in elements {
            guard let text = element.string, isValid(text), texts.count < 64 else {
                throw members.wrong(name, "\(expected), at most 64")
            }
            texts.append(text)
        }
        return texts
    }

    public var json: JSON {
        [
            "url": .string(url), "restricted": .boolean(isRestricted),
            "consent": asksConsent ? .string(Self.askingConsent) : nil,
            "methods": methods.map { .array($0.map { .string($0) }) },
            "paths": paths.map { .array($0.map { .string($0) }) },
            "fields": fields.map { .array($0.map { .string($0) }) }, "budget": budget.map { .integer($0) },
        ]
    }
}
