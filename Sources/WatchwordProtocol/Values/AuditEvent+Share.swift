internal import JSONText

extension AuditEvent {
    /// Returns the names of the groups that share the room of the audit log, for a line of the log: what happened and where the
    /// credential came from, then the program that caused it, then the login or the origin. The first does not depend on what a
    /// program calls itself, so programs of one kind of record cannot displace the records of another kind.
    public static func share(ofLine line: ArraySlice<UInt8>) -> [Int] {
        guard let event = try? JSON.parse(Array(line), limits: JSONLimits(depth: 8, values: 256)), event.kind == .object
        else { return [1] }
        let (client, space) = (event["client"], event["protectionSpace"])
        return [
            name([event["kind"], event["source"]]),
            name([client?["executable"], client?["script"]]),
            name([event["origin"], space?["host"], space?["realm"], event["user"]]),
        ]
    }

    private static func name(_ parts: [JSON?]) -> Int {
        var hasher = Hasher()
        for part in parts { hasher.combine(part?.string) }
        return hasher.finalize()
    }
}
