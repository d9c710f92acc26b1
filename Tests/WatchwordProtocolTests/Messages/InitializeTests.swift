import JSONText
import Testing
import WatchwordProtocol

struct InitializeTests {
    private func read(_ text: String) throws -> Initialize { try Initialize(JSON.parse(text)) }

    @Test(
        arguments: [
            ("", nil), (#","capabilities":{}"#, nil), (#","capabilities":{"challenge":null}"#, nil),
            (#","capabilities":{"challenge":{}}"#, .request),
            (#","capabilities":{"challenge":{"delivery":"request"}}"#, .request),
            (#","capabilities":{"challenge":{"delivery":"notification"}}"#, .notification),
            (#","capabilities":{"challenge":{"delivery":"none"}}"#, ChallengeDelivery.none),
        ] as [(String, ChallengeDelivery?)])
    func namingTheChallengeSubscribes(capabilities: String, delivery: ChallengeDelivery?) throws {
        let params = try read(#"{"client":{"name":"tool"},"protocolVersion":1\#(capabilities)}"#)
        #expect(params == Initialize(clientName: "tool", clientVersion: nil, delivery: delivery))
        #expect(try read(params.json.text) == params)
    }

    @Test func theVersionOfTheClientIsStored() throws {
        let params = try read(#"{"client":{"name":"tool","version":"1.2"},"protocolVersion":1}"#)
        #expect(params.clientVersion == "1.2")
        #expect(
            params.json.text == #"{"client":{"name":"tool","version":"1.2"},"protocolVersion":1,"capabilities":{}}"#)
    }

    @Test(arguments: [
        ("{}", "params.client is missing"), (#"{"client":{},"protocolVersion":1}"#, "params.client.name is missing"),
        (#"{"client":"tool","protocolVersion":1}"#, "params.client must be an object, not a string"),
        (#"{"client":{"name":1},"protocolVersion":1}"#, "params.client.name must be a string"),
        (#"{"client":{"name":"t","version":2},"protocolVersion":1}"#, "params.client.version must be a string"),
        (#"{"client":{"name":"t"}}"#, "params.protocolVersion is missing"),
        (#"{"client":{"name":"t"},"protocolVersion":2}"#, "params.protocolVersion must be a whole number from 1 to 1"),
        (
            #"{"client":{"name":"t"},"protocolVersion":1,"capabilities":{"challenge":true}}"#,
            "params.capabilities.challenge must be an object, not a boolean"
        ),
        (
            #"{"client":{"name":"t"},"protocolVersion":1,"capabilities":{"challenge":{"delivery":"mail"}}}"#,
            "params.capabilities.challenge.delivery must be one of: request, notification, none"
        ),
    ])
    func isRefused(text: String, reason: String) {
        #expect(problem { try read(text) } == reason)
    }

    @Test func theBrokerReportsItsCapabilities() {
        let json = Initialize.json("0.1")
        #expect(json["broker"]?.text == #"{"name":"watchwordd","version":"0.1"}"#)
        #expect(json["protocolVersion"] == 1)
        let limits = json["capabilities"]?["limits"]
        #expect(limits?["messageBytes"]?.integer == Limits.messageBytes)
        #expect(limits?["depth"]?.integer == Limits.messageDepth)
        #expect(limits?["batch"]?.integer == Limits.batchEntries)
    }
}
