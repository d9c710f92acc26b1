public import JSONText

/// `fetch/read`: the next part of a body that came back as a handle.
public struct FetchReadParams: Sendable, Equatable {
    public var fetchID: String
    public var maxBytes: Int

    public init(fetchID: String, maxBytes: Int = Limits.readChunkBytes) {
        self.fetchID = fetchID
        self.maxBytes = maxBytes
    }

    public init(_ json: JSON?) throws(InvalidParams) {
        let members = try Members(json)
        fetchID = try members.required("fetchId", members.string("fetchId"))
        maxBytes = try members.integer("maxBytes", in: 1...Limits.readChunkBytes) ?? Limits.readChunkBytes
    }

    public var json: JSON { ["fetchId": .string(fetchID), "maxBytes": .integer(maxBytes)] }
}

/// What `fetch/read` returns.
public struct FetchReadResult: Sendable, Equatable {
    public var data: [UInt8]
    /// Where `data` starts in the body.
    public var offsetBytes: Int
    public var isAtEnd: Bool

    public init(data: [UInt8], offsetBytes: Int, isAtEnd: Bool) {
        self.data = data
        self.offsetBytes = offsetBytes
        self.isAtEnd = isAtEnd
    }

    /// `nil` when `json` is no such result.
    public init?(_ json: JSON) {
        guard let data = json["data"].flatMap(BodyValue.bytes), let offset = json["offsetBytes"]?.integer,
            let isAtEnd = json["eof"]?.boolean
        else { return nil }
        self.init(data: data, offsetBytes: offset, isAtEnd: isAtEnd)
    }

    public var json: JSON {
        ["data": BodyValue.json(data), "offsetBytes": .integer(offsetBytes), "eof": .boolean(isAtEnd)]
    }
}
