public import JSONText

/// `events/subscribe`: selects the events that a client receives.
public struct EventsSubscribe: Method, Equatable {
    public static let name = "events/subscribe"

    /// The kinds of events; all by default, none for an empty list.
    public var kinds: Set<AuditEvent.Kind>

    public init(_ json: JSON?) throws(InvalidParams) {
        let members = try Members(json)
        guard let elements = try members.elements("kinds") else {
            kinds = Set(AuditEvent.Kind.allCases)
            return
        }
        kinds = []
        for element in elements {
            guard let kind = element.string.flatMap(AuditEvent.Kind.init) else {
                let names = AuditEvent.Kind.allCases.map(\.rawValue).joined(separator: ", ")
                throw members.wrong("kinds", "a list of: \(names)")
            }
            kinds.insert(kind)
        }
    }
}
