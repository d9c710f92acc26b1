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
        #expect(message.json.text == text)
    }

    @Test func theOtherSideReadsTheSameMessage() {
        let id = RequestID.string("x")
        #expect(
            IncomingMessage(OutgoingMessage.request(id: id, method: "m", params: [:]).json)
                == .request(id: id, method: "m", params: [:]))
        #expect(
            IncomingMessage(OutgoingMessage.notification(method: "m", params: [1]).json)
                == .notification(method: "m", params: [1]))
        #expect(IncomingMessage(OutgoingMessage.result(id: id, .null).json) == .result(id: id, .null))
        #expect(IncomingMessage(OutgoingMessage.error(id: id, Self.error).json) == .error(id: id, Self.error))
    }
}
