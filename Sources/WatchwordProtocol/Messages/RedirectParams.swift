public import JSONText

/// `redirects` of a fetch: deviations from the handling of redirects in RFC 9110 section 15.4.
public struct RedirectParams: Sendable, Equatable {
    /// Whether the method of a request that loses its body at a redirect is preserved. Otherwise it becomes GET.
    public var keepMethod = false
    /// The statuses, out of 301, 302 and 303, after which a POST remains a POST with its body.
    public var keepPost: Set<Int> = []
    /// The schemes that a redirect may lead to: `http`, `https`; `nil` for both.
    public var schemes: Set<String>?

    public init() {}

    init(_ members: Members) throws(InvalidParams) {
        keepMethod = try members.boolean("keepMethod") ?? keepMethod
        if let given = try members.elements("keepPost") {
            keepPost = Set(given.compactMap(\.integer))
            guard keepPost.isSubset(of: [301, 302, 303]), keepPost.count == given.count else {
                throw members.wrong("keepPost", "a list of: 301, 302, 303")
            }
        }
        if let given = try members.elements("schemes") {
            let names = Set(given.compactMap(\.string))
            guard names.isSubset(of: ["http", "https"]), names.count == given.count else {
                throw members.wrong("schemes", "a list of: http, https")
            }
            schemes = names
        }
    }

    public var json: JSON {
        [
            "keepMethod": keepMethod ? true : nil,
            "keepPost": keepPost.isEmpty ? nil : .array(keepPost.sorted().map { .integer($0) }),
            "schemes": schemes.map { .array($0.sorted().map { .string($0) }) },
        ]
    }
}
