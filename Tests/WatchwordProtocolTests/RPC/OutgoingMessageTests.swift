import JSONText
import Testing
import WatchwordProtocol

struct OutgoingMessageTests {
    private static let error = RPCError(code: -32601, message: "Method not found")

    @Test(arguments: [
        (
            OutgoingMessage.request(id: .integer(1), method: "auth/challenge", params: ["a": 1]),
            #"{"jsonrpc":"2.0","id":1,"method":"auth/challenge","params":{"a":1}}"#
        ),
        (.notification(method: "m", params: [:]), #"{"jsonrpc":"2.0","method":"m","params":{}}"#),
        (.result(id: .string("1"), .null), #"{"jsonrpc":"2.0","result":null,"id":"1"}"#),
        (.result(id: .null, 19), #"{"jsonrpc":"2.0","result":19,"id":null}"#),
        (
            .error(id: .string("1"), error),
            #"{"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found"},"id":"1"}"#
        ),
    ])
    func membersStandAsInTheSpecificationsExamples(message: OutgoingMessage, text: String) {
        #expect(String(decoding: message.serialized(), as: UTF8.self) == text)
    }

    private func parsed(_ message: OutgoingMessage) throws -> JSON {
        try JSON.parse(message.serialized(), limits: JSONLimits(depth: 8, values: 100))
    }

    @Test func theOtherSideReadsTheSameMessage() throws {
        let id = RequestID.string("x")
        #expect(
            try IncomingMessage(parsed(OutgoingMessage.request(id: id, method: "m", params: [:])))
                == .request(id: id, method: "m", params: [:]))
        #expect(
            try IncomingMessage(parsed(OutgoingMessage.notification(method: "m", params: [1])))
                == .notification(method: "m", params: [1]))
        #expect(try IncomingMessage(parsed(OutgoingMessage.result(id: id, .null))) == .result(id: id, .null))
        #expect(try IncomingMessage(parsed(OutgoingMessage.error(id: id, Self.error))) == .error(id: id, Self.error))
    }
}
