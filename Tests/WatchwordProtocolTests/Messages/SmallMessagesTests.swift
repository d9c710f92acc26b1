import JSONText
import Testing
import WatchwordProtocol

struct SmallMessagesTests {
    @Test(arguments: [("7", RequestID.integer(7)), (#""7""#, .string("7"))])
    func theRequestToCancelIsNamedByItsId(id: String, expected: RequestID) throws {
        let params = try CancelRequestParams(JSON.parse(#"{"id":\#(id)}"#))
        #expect(params == CancelRequestParams(id: expected))
        #expect(params.json.text == #"{"id":\#(id)}"#)
    }

    @Test(arguments: [
        ("{}", "params.id is missing"), (#"{"id":null}"#, "params.id is missing"),
        (#"{"id":1.5}"#, "params.id must be a string or an integer"),
        (#"{"id":[]}"#, "params.id must be a string or an integer"),
        ("[7]", "pass params by name, in an object"),
    ])
    func otherIdsCannotBeCancelled(text: String, reason: String) {
        #expect(problem { try CancelRequestParams(JSON.parse(text)) } == reason)
    }

    @Test func aFetchIsNamedByItsId() throws {
        #expect(try FetchCancel(JSON.parse(#"{"fetchId":"f1"}"#)).fetchID == "f1")
        #expect(problem { try FetchCancel(nil) } == "params.fetchId is missing")
        #expect(problem { try FetchCancel(["fetchId": 1]) } == "params.fetchId must be a string")
    }

    @Test func theSessionIsClearedForOneOriginOrForAll() throws {
        #expect(try SessionClear(JSON.parse(#"{"origin":"https://h"}"#)).origin == "https://h")
        #expect(try SessionClear(nil).origin == nil)
        let since = try SessionClear(["since": "2026-11-22T15:30:00+01:00"])
        #expect(since.since == .seconds(1_795_357_800) && since.json["since"]?.string == "2026-11-22T14:30:00.000Z")
        let text = problem { try SessionClear(["since": "yesterday"]) }
        #expect(text?.contains("params.since must be a time") == true)
        #expect(problem { try SessionClear(["origin": ["x"]]) } == "params.origin must be a string")
    }

    @Test(arguments: [1, 512, Limits.readChunkBytes])
    func aReadIsReadAsItWasWritten(maxBytes: Int) throws {
        let params = FetchRead(fetchID: "f1", maxBytes: maxBytes)
        #expect(params.json.text == #"{"fetchId":"f1","maxBytes":\#(maxBytes)}"#)
        #expect(try FetchRead(JSON.parse(params.json.text)) == params)
    }

    @Test func maxBytesOfAReadHasADefaultAndARange() throws {
        #expect(try FetchRead(JSON.parse(#"{"fetchId":"f1"}"#)).maxBytes == Limits.readChunkBytes)
        for maxBytes in [0, -1, Limits.readChunkBytes + 1] {
            #expect(
                problem { try FetchRead(["fetchId": "f1", "maxBytes": .integer(maxBytes)]) }
                    == "params.maxBytes must be a whole number from 1 to \(Limits.readChunkBytes)")
        }
        #expect(problem { try FetchRead(["maxBytes": 1]) } == "params.fetchId is missing")
    }

    @Test(arguments: [Array("text".utf8), [0xFF, 0], []])
    func aReadResultIsReadAsItWasWritten(data: [UInt8]) throws {
        let result = FetchReadResult(data: data, offsetBytes: 42, isAtEnd: true)
        #expect(try FetchReadResult(JSON.parse(result.json.text)) == result)
        #expect(result.json.members?.map(\.name) == ["data", "offsetBytes", "eof"])
    }

    @Test(arguments: ["data", "offsetBytes", "eof"])
    func everyMemberOfAResultIsRequired(member: String) {
        let result = FetchReadResult(data: [1], offsetBytes: 0, isAtEnd: false)
        #expect(FetchReadResult(result.json.adding([member: .null])) == nil)
    }
}
