import JSONText
import Testing
import WatchwordProtocol

/// JSON-RPC 2.0 sections 4 and 5. SECURITY-RULES P1 to P15.
struct IncomingMessageTests {
    private func read(_ text: String) throws -> IncomingMessage { IncomingMessage(try JSON.parse(text)) }

    @Test(arguments: [("7", RequestID.integer(7)), (#""7""#, .string("7")), ("null", .null), ("-1", .integer(-1))])
    func aRequestHasItsId(id: String, expected: RequestID) throws {
        let message = try read(#"{"jsonrpc":"2.0","id":\#(id),"method":"ping","params":{"a":1}}"#)
        #expect(message == .request(id: expected, method: "ping", params: ["a": 1]))
    }

    @Test("Rule P5: a request without an id is a notification")
    func aRequestWithoutIdIsANotification() throws {
        #expect(try read(#"{"jsonrpc":"2.0","method":"ping"}"#) == .notification(method: "ping", params: nil))
    }

    @Test(arguments: ["{}", "[]", "[1,2]", #"{"a":[]}"#])
    func paramsAreAnObjectOrAnArray(params: String) throws {
        let message = try read(#"{"jsonrpc":"2.0","id":1,"method":"m","params":\#(params)}"#)
        #expect(message == .request(id: .integer(1), method: "m", params: try JSON.parse(params)))
    }

    @Test(
        "Rule P1: a message of any other version is invalid",
        arguments: [
            #""jsonrpc":2.0"#, #""jsonrpc":"1.0""#, #""jsonrpc":"2""#, #""jsonrpc":null"#, #""JSONRPC":"2.0""#,
            #""x":0"#,
        ])
    func everyMessageHasItsVersion(version: String) throws {
        #expect(try invalidID(#"{\#(version),"id":"a","method":"m"}"#) == .string("a"))
        #expect(try invalidID(#"{\#(version),"method":"m"}"#) == .null)
        #expect(try invalidID(#"{\#(version),"id":[],"method":"m"}"#) == .null)
    }

    @Test(
        "Rule P2: a method that is not a string is invalid", arguments: ["1", "null", "true", "[]", "{}", #"["ping"]"#])
    func aMethodIsAString(method: String) throws {
        #expect(try invalidID(#"{"jsonrpc":"2.0","id":3,"method":\#(method)}"#) == .integer(3))
        #expect(try invalidID(#"{"jsonrpc":"2.0","method":\#(method)}"#) == .null)
    }

    @Test(
        "Rule P3: params that are neither an object nor an array are invalid",
        arguments: ["null", "1", "true", #""text""#])
    func paramsOfAnyOtherKindAreInvalid(params: String) throws {
        #expect(try invalidID(#"{"jsonrpc":"2.0","id":3,"method":"m","params":\#(params)}"#) == .integer(3))
    }

    @Test(
        "Rule P4: an id that is not a string, integer or null is invalid and answered with null",
        arguments: ["1.5", "1.0", "1e3", "true", "false", "[]", "[1]", "{}"])
    func idsOfAnyOtherKindAreInvalidAndAnsweredWithNull(id: String) throws {
        #expect(try invalidID(#"{"jsonrpc":"2.0","id":\#(id),"method":"m"}"#) == .null)
    }

    @Test("Rule P5: a request with a null id gets a reply")
    func aNullIdAsksForAReply() throws {
        #expect(try read(#"{"jsonrpc":"2.0","id":null,"method":"m"}"#) == .request(id: .null, method: "m", params: nil))
    }

    @Test(arguments: ["1", "null", #""text""#, "true", "[]", "[1]"])
    func aMessageIsAnObject(text: String) throws {
        #expect(try invalidID(text) == .null)
    }

    @Test(arguments: ["{}", #"{"jsonrpc":"2.0"}"#, #"{"jsonrpc":"2.0","params":{}}"#, #"{"foo":"boo"}"#])
    func anObjectWithoutAMethodOrResultIsInvalid(text: String) throws {
        #expect(try invalidID(text) == .null)
    }

    @Test func anObjectWithNothingButAnIdKeepsIt() throws {
        guard case .empty(id: .integer(4), _) = try read(#"{"jsonrpc":"2.0","id":4}"#) else {
            Issue.record("neither a request nor a reply")
            return
        }
    }

    @Test(arguments: ["null", "false", "{}", #"{"action":"cancel"}"#])
    func aResultMayBeAnything(result: String) throws {
        let message = try read(#"{"jsonrpc":"2.0","id":5,"result":\#(result)}"#)
        #expect(message == .result(id: .integer(5), try JSON.parse(result)))
    }

    @Test func anErrorHasCodeMessageAndMaybeData() throws {
        #expect(
            try read(#"{"jsonrpc":"2.0","id":5,"error":{"code":-32601,"message":"no","data":[1]}}"#)
                == .error(id: .integer(5), RPCError(code: -32601, message: "no", data: [1])))
        #expect(
            try read(#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}"#)
                == .error(id: .null, RPCError(code: -32700, message: "Parse error")))
    }

    @Test(
        "Rules P7 and P13: a reply that has both or neither of result and error is malformed",
        arguments: [
            #""result":1,"error":{"code":1,"message":"x"}"#, #""result":null,"error":null"#,
            #""result":1,"error":null"#,
            #""result":null,"error":{"code":1,"message":"x"}"#, #""error":null"#, #""error":"x""#, #""error":{}"#,
            #""error":{"code":1}"#, #""error":{"message":"x"}"#, #""error":{"code":"1","message":"x"}"#,
            #""error":{"code":1.5,"message":"x"}"#, #""error":{"code":1,"message":2}"#, #""error":[]"#,
        ])
    func aReplyHasEitherAResultOrAnError(members: String) throws {
        #expect(try read(#"{"jsonrpc":"2.0","id":6,\#(members)}"#) == .malformedReply(id: .integer(6)))
    }

    /// An error in answer to a reply could be taken for the reply to a request of the peer's own, or be answered in turn.
    @Test("Rule P12: a malformed reply is read as a reply, not as a request")
    func aMalformedReplyIsNeverAnswered() throws {
        #expect(try read(#"{"id":6,"result":1}"#) == .malformedReply(id: .integer(6)))
        #expect(
            try read(#"{"jsonrpc":"1.0","id":6,"error":{"code":1,"message":"x"}}"#) == .malformedReply(id: .integer(6)))
        #expect(try read(#"{"jsonrpc":"2.0","id":1.5,"result":1}"#) == .malformedReply(id: .null))
    }

    @Test("Unknown members beside params are ignored")
    func unknownMembersAreIgnored() throws {
        #expect(
            try read(#"{"jsonrpc":"2.0","id":1,"method":"m","trace":{"x":1},"":null}"#)
                == .request(id: .integer(1), method: "m", params: nil))
        #expect(try read(#"{"jsonrpc":"2.0","id":1,"result":2,"trace":0}"#) == .result(id: .integer(1), 2))
    }

    @Test func reasonsDoNotQuoteTheMessage() throws {
        for text in [#"{"jsonrpc":"hunter2","method":"m"}"#, #"{"jsonrpc":"2.0","method":["hunter2"]}"#, #""hunter2""#]
        {
            let message = try read(text)
            guard case .invalid(_, let reason) = message else {
                Issue.record("\(message) is not invalid")
                continue
            }
            #expect(!reason.contains("hunter2"))
            #expect(reason.split(separator: " ").count >= 4)
        }
    }

    /// Returns the id of the error reply to an invalid message.
    private func invalidID(_ text: String) throws -> RequestID? {
        guard case .invalid(let id, _) = try read(text) else { return nil }
        return id
    }
}
