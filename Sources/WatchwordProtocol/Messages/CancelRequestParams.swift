public import JSONText

/// The parameters of `$/cancelRequest`: the id of the request to cancel.
public struct CancelRequestParams: Sendable, Equatable {
    public var id: RequestID

    public init(id: RequestID) { self.id = id }

    public init(_ json: JSON?) throws(InvalidParams) {
        let members = try Members(json)
        let id = try members.required("id", members["id"])
        guard let id = RequestID(id) else { throw members.wrong("id", "a string or an integer") }
        self.id = id
    }

    public var json: JSON { ["id": id.json] }
}
