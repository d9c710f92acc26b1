import JSONText

extension JSON {
    /// Parses a text of a test, with room to spare unless the test is about the limits.
    static func parse(_ text: String, depth: Int = 64, values: Int = 1000) throws(JSONFailure) -> JSON {
        try parse(Array(text.utf8), limits: JSONLimits(depth: depth, values: values))
    }

    var text: String { String(decoding: serialized(), as: UTF8.self) }
}
