import Testing
import WatchwordProtocol

struct ErrorKindTests {
    @Test func codesAreUnique() {
        #expect(Set(ErrorKind.allCases.map(\.code)).count == ErrorKind.allCases.count)
    }

    @Test(arguments: [
        (ErrorKind.parseError, -32700, "Parse error"), (.invalidRequest, -32600, "Invalid Request"),
        (.methodNotFound, -32601, "Method not found"), (.invalidParams, -32602, "Invalid params"),
        (.internalError, -32603, "Internal error"), (.cancelled, -32800, "Request cancelled"),
    ])
    func standardCodesHaveTheirStandardMessage(kind: ErrorKind, code: Int, message: String) {
        #expect(kind.code == code)
        #expect(kind.standardMessage == message)
    }

    @Test(
        "Rule P8: the broker's error codes start at 1000",
        arguments: ErrorKind.allCases.filter { $0.standardMessage == nil })
    func codesOfThisProtocolStartAtOneThousand(kind: ErrorKind) {
        #expect(kind.code >= 1000)
    }

    @Test func onlyTheStandardOnesHaveAMessage() {
        #expect(ErrorKind.allCases.filter { $0.standardMessage != nil }.count == 6)
    }

    /// The names are fixed by the protocol: clients compare them.
    @Test(arguments: [
        "challengeCancelled", "tooManyAttempts", "serverNotTrusted", "insecureRedirect", "tooManyRedirects",
        "nameNotResolved",
        "cannotConnect", "timedOut", "tooLarge", "badURL", "invalidHeader", "denied", "shuttingDown", "busy",
    ])
    func kindsHaveTheirNames(name: String) {
        #expect(ErrorKind(rawValue: name) != nil)
    }
}
