import JSONText
import Testing
import WatchwordProtocol

struct RPCErrorTests {
    @Test func aStandardCodeHasTheMessageOfTheSpecification() {
        let error = RPCError(.invalidParams, "params.url is missing")
        #expect(
            error.json.text
                == #"{"code":-32602,"message":"Invalid params","data":{"kind":"invalidParams","#
                + #""detail":"params.url is missing","retry":"differently"}}"#)
        #expect(error.text == "params.url is missing")
    }

    @Test func anErrorOfThisProtocolHasItsDetailAsMessage() {
        let error = RPCError(.nameNotResolved, "The name intranet.example was not found.", fetchID: "f17")
        #expect(
            error.json.text
                == #"{"code":1020,"message":"The name intranet.example was not found.","data":{"kind":"nameNotResolved","#
                + #""retry":"later","fetchId":"f17"}}"#)
        #expect(error.text == "The name intranet.example was not found.")
    }

    @Test(arguments: FailureCause.allCases)
    func keepsItsCauseOverTheWire(cause: FailureCause) throws {
        let error = RPCError(.connectionLost, "What happened.", cause: cause, fetchID: "f1")
        #expect(try RPCError(JSON.parse(error.json.text))?.cause == cause)
        #expect(error.json["data"]?["cause"]?.string == cause.rawValue)
        #expect(RPCError(.connectionLost, "What happened.").cause == nil)
    }

    @Test(arguments: ErrorKind.allCases)
    func keepsItsKindOverTheWire(kind: ErrorKind) throws {
        let error = RPCError(kind, "What happened, and what to do.", fetchID: "f1")
        let received = try #require(RPCError(JSON.parse(error.json.text)))
        #expect(received == error)
        #expect(received.kind == kind)
        #expect(received.text == "What happened, and what to do.")
    }

    @Test(arguments: [
        "{}", #"{"code":1}"#, #"{"message":"x"}"#, #"{"code":"1","message":"x"}"#, #"{"code":1.0,"message":"x"}"#,
        #"{"code":1,"message":null}"#, "[]", "null", #""x""#,
    ])
    func otherValuesAreNotErrors(text: String) throws {
        #expect(try RPCError(JSON.parse(text)) == nil)
    }

    @Test func anErrorOfAnotherProgramHasNoKind() throws {
        for data in ["null", "{}", #"{"kind":"brandNew"}"#, #"{"kind":1}"#, "[]", #""busy""#] {
            let error = try #require(RPCError(JSON.parse(#"{"code":1,"message":"x","data":\#(data)}"#)))
            #expect(error.kind == nil)
            #expect(error.text == "x")
        }
    }
}
