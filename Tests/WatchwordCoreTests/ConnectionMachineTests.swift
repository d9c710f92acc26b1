import JSONText
import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// A connection with the methods of the examples in the JSON-RPC 2.0 specification.
private final class Conversation {
    var machine = ConnectionMachine()
    var notifications: [String] = []
    var replies: [ConnectionMachine.Reply] = []
    var calls: [ConnectionMachine.CallID] = []
    var isClosed = false
    /// Calls of this method are not answered.
    let open = "wait"

    func say(_ text: String) -> String {
        let bytes = Array((text + "\n").utf8)
        var sent: [UInt8] = []
        for event in bytes.withUnsafeBytes({ machine.received($0) }) {
            switch event {
            case .call(let call, let method, let params):
                calls.append(call)
                if method != open { sent += machine.complete(call, Self.run(method, params)) ?? [] }
            case .notification(let method, _): notifications.append(method)
            case .cancel(let call): sent += machine.complete(call, .failure(RPCError(.cancelled, "cancelled"))) ?? []
            case .reply(_, let reply): replies.append(reply)
            case .send(let bytes): sent += bytes
            case .close: isClosed = true
            }
        }
        return String(decoding: sent, as: UTF8.self)
    }

    private static func run(_ method: String, _ params: JSON?) -> Result<JSON, RPCError> {
        let numbers = params?.elements?.compactMap(\.integer) ?? []
        switch method {
        case "subtract":
            let minuend = params?["minuend"]?.integer ?? numbers.first ?? 0
            return .success(.integer(minuend - (params?["subtrahend"]?.integer ?? numbers.last ?? 0)))
        case "sum": return .success(.integer(numbers.reduce(0, +)))
        case "get_data": return .success(["hello", 5])
        default: return .failure(RPCError(.methodNotFound, "no such method"))
        }
    }
}

/// The specification leaves `data` to the server; without it, errors equal those in its examples.
private func withoutErrorData(_ text: String) throws -> String {
    guard !text.isEmpty else { return "" }
    let json = try JSON.parse(Array(text.utf8), limits: JSONLimits(depth: 8, values: 1000))
    let strip = { (reply: JSON) -> JSON in
        guard let error = reply["error"], let id = reply["id"] else { return reply }
        return [
            "jsonrpc": reply["jsonrpc"],
            "error": ["code": error["code"], "message": error["message"]], "id": id,
        ]
    }
    let stripped = json.elements.map { JSON.array($0.map(strip)) } ?? strip(json)
    return String(decoding: stripped.serialized(), as: UTF8.self)
}

@Suite struct ConnectionMachineTests {
    /// Section 7 of the JSON-RPC 2.0 specification, in its order.
    @Test(
        "Rules P6 and P9: the examples of JSON-RPC 2.0 section 7 have the documented replies",
        arguments: [
            (
                #"{"jsonrpc": "2.0", "method": "subtract", "params": [42, 23], "id": 1}"#,
                #"{"jsonrpc": "2.0", "result": 19, "id": 1}"#
            ),
            (
                #"{"jsonrpc": "2.0", "method": "subtract", "params": [23, 42], "id": 2}"#,
                #"{"jsonrpc": "2.0", "result": -19, "id": 2}"#
            ),
            (
                #"{"jsonrpc": "2.0", "method": "subtract", "params": {"subtrahend": 23, "minuend": 42}, "id": 3}"#,
                #"{"jsonrpc": "2.0", "result": 19, "id": 3}"#
            ),
            (
                #"{"jsonrpc": "2.0", "method": "subtract", "params": {"minuend": 42, "subtrahend": 23}, "id": 4}"#,
                #"{"jsonrpc": "2.0", "result": 19, "id": 4}"#
            ),
            (#"{"jsonrpc": "2.0", "method": "update", "params": [1,2,3,4,5]}"#, ""),
            (#"{"jsonrpc": "2.0", "method": "foobar"}"#, ""),
            (
                #"{"jsonrpc": "2.0", "method": "foobar", "id": "1"}"#,
                #"{"jsonrpc": "2.0", "error": {"code": -32601, "message": "Method not found"}, "id": "1"}"#
            ),
            (
                #"{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]"#,
                #"{"jsonrpc": "2.0", "error": {"code": -32700, "message": "Parse error"}, "id": null}"#
            ),
            (
                #"{"jsonrpc": "2.0", "method": 1, "params": "bar"}"#,
                #"{"jsonrpc": "2.0", "error": {"code": -32600, "message": "Invalid Request"}, "id": null}"#
            ),
            (
                #"[ {"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"}, {"jsonrpc": "2.0", "method" ]"#,
                #"{"jsonrpc": "2.0", "error": {"code": -32700, "message": "Parse error"}, "id": null}"#
            ),
            ("[]", #"{"jsonrpc": "2.0", "error": {"code": -32600, "message": "Invalid Request"}, "id": null}"#),
            ("[1]", #"[ {"jsonrpc": "2.0", "error": {"code": -32600, "message": "Invalid Request"}, "id": null} ]"#),
            (
                "[1,2,3]",
                #"[ {"jsonrpc": "2.0", "error": {"code": -32600, "message": "Invalid Request"}, "id": null}, {"jsonrpc": "2.0", "error": {"code": -32600, "message": "Invalid Request"}, "id": null}, {"jsonrpc": "2.0", "error": {"code": -32600, "message": "Invalid Request"}, "id": null} ]"#
            ),
            (
                #"[ {"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"}, {"jsonrpc": "2.0", "method": "notify_hello", "params": [7]}, {"jsonrpc": "2.0", "method": "subtract", "params": [42,23], "id": "2"}, {"foo": "boo"}, {"jsonrpc": "2.0", "method": "foo.get", "params": {"name": "myself"}, "id": "5"}, {"jsonrpc": "2.0", "method": "get_data", "id": "9"} ]"#,
                #"[ {"jsonrpc": "2.0", "result": 7, "id": "1"}, {"jsonrpc": "2.0", "result": 19, "id": "2"}, {"jsonrpc": "2.0", "error": {"code": -32600, "message": "Invalid Request"}, "id": null}, {"jsonrpc": "2.0", "error": {"code": -32601, "message": "Method not found"}, "id": "5"}, {"jsonrpc": "2.0", "result": ["hello", 5], "id": "9"} ]"#
            ),
            (
                #"[ {"jsonrpc": "2.0", "method": "notify_sum", "params": [1,2,4]}, {"jsonrpc": "2.0", "method": "notify_hello", "params": [7]} ]"#,
                ""
            ),
        ])
    func section7(request: String, reply: String) throws {
        let conversation = Conversation()
        let said = conversation.say(request)
        let expected = reply.split(separator: "\"", omittingEmptySubsequences: false).enumerated()
            .map { $0.offset.isMultiple(of: 2) ? String($0.element.filter { $0 != " " }) : String($0.element) }
            .joined(separator: "\"")
        #expect(try withoutErrorData(said) == expected)
    }

    @Test("Rule P14: an id in use is refused and the first request continues")
    func anIdInUseIsRefusedAndTheFirstCallContinues() {
        let conversation = Conversation()
        #expect(conversation.say(#"{"jsonrpc":"2.0","method":"wait","id":1}"#) == "")
        #expect(conversation.say(#"{"jsonrpc":"2.0","method":"sum","id":1}"#).contains("-32600"))
        #expect(conversation.say(#"{"jsonrpc":"2.0","method":"sum","id":"1"}"#).contains(#""id":"1""#))
        let open = conversation.machine.openCallCount
        #expect(open == 1)
        let late = conversation.machine.complete(conversation.calls[0], .success(7)) ?? []
        #expect(String(decoding: late, as: UTF8.self) == #"{"jsonrpc":"2.0","result":7,"id":1}"# + "\n")
        #expect(conversation.say(#"{"jsonrpc":"2.0","method":"sum","id":1}"#).contains("result"))
    }

    @Test("Rule P7: a request has exactly one reply, even when it is cancelled")
    func aCallIsAnsweredOnceAlsoWhenItIsCancelled() {
        let conversation = Conversation()
        _ = conversation.say(#"{"jsonrpc":"2.0","method":"wait","id":"a"}"#)
        let cancel = #"{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":"a"}}"#
        #expect(conversation.say(cancel).contains("-32800"))
        #expect(conversation.say(cancel) == "")
        let again = conversation.machine.complete(conversation.calls[0], .success(1))
        #expect(again == nil)
        #expect(conversation.say(#"{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":[]}}"#) == "")
        #expect(conversation.notifications.isEmpty)
    }

    @Test("Rule P15: a notification with an unknown member is dropped and counted")
    func aNotificationWithAnUnknownMemberIsDropped() {
        let conversation = Conversation()
        _ = conversation.say(#"{"jsonrpc":"2.0","id":"a","method":"m"}"#)
        let cancel = #"{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":"a","idd":"b"}}"#
        #expect(conversation.say(cancel) == "")
        let ignored = conversation.machine.ignoredMessages
        #expect(ignored == 1)
    }

    @Test("Rule P12: replies to no request are counted and ignored")
    func repliesToNoRequestAreCountedAndIgnored() {
        let conversation = Conversation()
        let (number, _) = conversation.machine.request(method: "ask", params: [:])
        #expect(number == 1)
        _ = conversation.say(#"{"jsonrpc":"2.0","result":1,"id":"1"}"#)
        _ = conversation.say(#"{"jsonrpc":"2.0","result":1,"id":2}"#)
        _ = conversation.say(#"{"jsonrpc":"2.0","result":1,"id":1}"#)
        _ = conversation.say(#"{"jsonrpc":"2.0","result":1,"id":1}"#)
        #expect(conversation.replies == [.result(1)])
        let ignored = conversation.machine.ignoredMessages
        #expect(ignored == 3)
    }

    @Test(arguments: [#"{"jsonrpc":"2.0","result":1,"id":7}"#, "{", "{}", "[]", #"{"id":1}"#, "[7]"])
    func tooManyInvalidMessagesEndTheConnection(text: String) {
        let conversation = Conversation()
        for _ in 0..<Limits.invalidMessages { _ = conversation.say(text) }
        _ = conversation.machine.request(method: "ask", params: [:])
        _ = conversation.say(#"{"jsonrpc":"2.0","result":1,"id":1}"#)
        for _ in 0..<Limits.invalidMessages { _ = conversation.say(text) }
        _ = conversation.say(#"{"jsonrpc":"2.0","method":"sum","id":1}"#)
        for _ in 0..<Limits.invalidMessages { _ = conversation.say(text) }
        #expect(!conversation.isClosed, "a valid message resets the count")
        #expect(conversation.say(text).contains("\"code\":1033"))
        #expect(conversation.isClosed)
        #expect(conversation.say(#"{"jsonrpc":"2.0","method":"sum","id":1}"#) == "")
    }

    @Test func aMessageIsUnfinishedUntilItsEnd() {
        let conversation = Conversation()
        func feed(_ text: String) -> (unfinished: Int?, complete: Int) {
            _ = Array(text.utf8).withUnsafeBytes { conversation.machine.received($0) }
            return (conversation.machine.unfinishedCount, conversation.machine.messageCount)
        }
        #expect(feed("{}\n") == (nil, 1))
        #expect(feed("{}\n{") == (1, 2))
        #expect(feed("}") == (2, 2))
        #expect(feed("\n") == (nil, 3))
        _ = conversation.machine.abortConnection("enough")
        #expect(feed("{") == (nil, 3))
    }

    @Test("Rule P13: a reply with both or neither of result and error is malformed")
    func aReplyWithBothOrNeitherOfResultAndErrorIsMalformed() {
        let conversation = Conversation()
        _ = conversation.machine.request(method: "ask", params: [:])
        _ = conversation.machine.request(method: "ask", params: [:])
        _ = conversation.say(#"{"jsonrpc":"2.0","result":1,"error":{"code":1,"message":"m"},"id":1}"#)
        _ = conversation.say(#"{"jsonrpc":"2.0","error":"odd","id":2}"#)
        _ = conversation.machine.request(method: "ask", params: [:])
        #expect(conversation.say(#"{"jsonrpc":"2.0","id":3}"#) == "")
        #expect(conversation.replies == [.broken, .broken, .broken])
        #expect(conversation.say(#"{"jsonrpc":"2.0","id":3}"#).contains("-32600"))
    }

    @Test func aWithdrawnRequestIsCancelledOnceAndItsReplyIgnored() {
        let conversation = Conversation()
        _ = conversation.machine.request(method: "ask", params: [:])
        let told = conversation.machine.withdraw(request: 1) ?? []
        #expect(
            String(decoding: told, as: UTF8.self) == #"{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}}"#
                + "\n")
        let again = conversation.machine.withdraw(request: 1)
        #expect(again == nil)
        _ = conversation.say(#"{"jsonrpc":"2.0","result":1,"id":1}"#)
        #expect(conversation.replies.isEmpty)
    }

    @Test func requestsInFlightAreLimited() {
        let conversation = Conversation()
        for id in 0..<Limits.requestsInFlight {
            #expect(conversation.say(#"{"jsonrpc":"2.0","method":"wait","id":\#(id)}"#) == "")
        }
        #expect(conversation.say(#"{"jsonrpc":"2.0","method":"wait","id":"more"}"#).contains(#""kind":"busy""#))
        _ = conversation.machine.complete(conversation.calls[0], .success(1))
        #expect(conversation.say(#"{"jsonrpc":"2.0","method":"wait","id":"more"}"#) == "")
    }

    @Test("Rules P9 and P10: batches are limited and contain no batches")
    func batchesAreLimitedAndHoldNoBatches() {
        let conversation = Conversation()
        let entry = #"{"jsonrpc":"2.0","method":"sum","params":[1],"id":null}"#
        let fits = "[" + Array(repeating: entry, count: Limits.batchEntries).joined(separator: ",") + "]"
        #expect(conversation.say(fits).hasPrefix("[{"))
        let over = fits.dropLast() + ",\(entry)]"
        #expect(conversation.say(String(over)).hasPrefix(#"{"jsonrpc":"2.0","error":{"code":-32600"#))
        #expect(conversation.say("[[\(entry)]]").contains("-32600"))
    }

    @Test("Rule P9: a batch is answered once its slowest request is")
    func aBatchWaitsForItsSlowestCall() {
        let conversation = Conversation()
        let batch = #"[{"jsonrpc":"2.0","method":"wait","id":1},{"jsonrpc":"2.0","method":"sum","params":[2],"id":2}]"#
        #expect(conversation.say(batch) == "")
        let sent = conversation.machine.complete(conversation.calls[0], .success(1)) ?? []
        #expect(
            String(decoding: sent, as: UTF8.self)
                == #"[{"jsonrpc":"2.0","result":1,"id":1},{"jsonrpc":"2.0","result":2,"id":2}]"# + "\n")
    }

    @Test("Rules P6 and J1: after a message that is too deep or too large the connection continues")
    func depthAndSizeAreLimitedAndTheConnectionContinues() {
        let conversation = Conversation()
        let deep =
            String(repeating: "[", count: Limits.messageDepth + 1)
            + String(repeating: "]", count: Limits.messageDepth + 1)
        #expect(conversation.say(#"{"a":\#(deep)}"#).contains("-32700"))
        let large = "{\"a\":\"" + String(repeating: "x", count: Limits.messageBytes) + "\"}"
        #expect(conversation.say(large).contains(#""kind":"tooLarge""#))
        #expect(conversation.say(#"{"jsonrpc":"2.0","method":"sum","params":[3],"id":1}"#).contains(#""result":3"#))
        #expect(!conversation.isClosed)
    }

    @Test func repliesUseThePeersFraming() {
        let conversation = Conversation()
        let body = #"{"jsonrpc":"2.0","method":"sum","params":[3],"id":1}"#
        let said = conversation.say("Content-Length: \(body.utf8.count + 1)\r\n\r\n\(body)")
        #expect(said == "Content-Length: 35\r\n\r\n" + #"{"jsonrpc":"2.0","result":3,"id":1}"#)
    }

    @Test func malformedFramingGetsOneErrorLineAndEndsTheConnection() {
        let conversation = Conversation()
        let said = conversation.say("GET / HTTP/1.1")
        #expect(said.contains(#""kind":"protocolViolation""#))
        #expect(said.filter { $0 == "\n" }.count == 1)
        #expect(conversation.isClosed)
        #expect(conversation.say(#"{"jsonrpc":"2.0","method":"sum","id":1}"#) == "")
    }
}
