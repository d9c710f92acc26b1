import JSONText
import WatchwordProtocol

extension JSON {
    /// Parses a text of a test within the broker's own limits.
    static func parse(_ text: String) throws(JSONFailure) -> JSON {
        let limits = JSONLimits(depth: Limits.messageDepth, values: Limits.messageValues)
        return try parse(Array(text.utf8), limits: limits)
    }

    var text: String { String(decoding: serialized(), as: UTF8.self) }
}

/// Returns the problem that `read` reports; `nil` if it succeeds.
func problem<Value>(_ read: () throws -> Value) -> String? {
    do {
        _ = try read()
        return nil
    } catch let error as InvalidParams {
        return error.detail
    } catch {
        return "not about parameters: \(error)"
    }
}
