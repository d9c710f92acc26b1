import JSONText
import Testing
import WatchwordClient
import WatchwordProtocol

@Suite struct FetchRunEncodingTests {
    /// The broker reads the parameters that a client sends, including the user information of the URL.
    @Test func userInformationOfTheURLIsTransmitted() throws {
        var params = FetchRunParams(url: "http://h/a?b")
        params.userInfo = Array("bob:p%40w".utf8).withUnsafeBytes { Secret(copying: $0) }
        let json = params.json
        #expect(json["url"]?.string == "http://bob:p%40w@h/a?b")
        let read = try FetchRunParams(json)
        #expect(read.url == "http://h/a?b")
        #expect(read.userInfo == params.userInfo)
    }

    @Test func aMissingBrokerIsReportedAsNotRunning() {
        let location = SocketLocation(explicit: "/nonexistent/s", environment: { _ in nil }, uid: 7)
        #expect(throws: ClientFailure.notRunning(path: "/nonexistent/s")) { try BrokerConnection(location) }
    }
}
