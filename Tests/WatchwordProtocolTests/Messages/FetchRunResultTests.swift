import JSONText
import Testing
import WatchwordProtocol

struct FetchRunResultTests {
    private func result(
        body: FetchRunResult.Body, reason: String = "", authentication: FetchRunResult.Authentication? = nil,
        challengeTime: Duration = .zero
    ) -> FetchRunResult {
        FetchRunResult(
            fetchID: "f17", status: 200, reason: reason, url: "https://intranet.example/report", httpVersion: "1.1",
            headers: [HeaderField("Content-Type", "text/csv")], body: body, bodyBytes: 3,
            authentication: authentication,
            exchanges: 2, totalTime: .microseconds(41_204), challengeTime: challengeTime)
    }

    @Test func isWrittenAsTheProtocolSays() {
        let authentication = FetchRunResult.Authentication(method: .httpDigest, source: .session, user: "bob")
        #expect(
            result(body: .inline(BodyValue(Array("a,b".utf8))), authentication: authentication).json.text
                == #"{"fetchId":"f17","status":200,"url":"https://intranet.example/report","httpVersion":"1.1","#
                + #""headers":[["Content-Type","text/csv"]],"body":{"type":"string","value":"a,b"},"bodyBytes":3,"#
                + #""auth":{"authenticationMethod":"httpDigest","source":"session","user":"bob"},"exchanges":2,"#
                + #""timingsMs":{"total":41.2,"challenge":0.0}}"#)
    }

    @Test func theReasonPhraseIsThereWhereThereIsOne() {
        let none = result(body: .handle)
        #expect(none.json["reason"] == nil && none.headersJSON(.integer(1))["reason"] == nil)
        let result = result(body: .handle, reason: "Fine")
        let completed = result.completedJSON(bodyBytes: 7)
        #expect(result.json["reason"]?.string == "Fine" && completed["reason"]?.string == "Fine")
        #expect(completed["body"] == nil && completed["bodyBytes"]?.integer == 7)
        #expect(result.headersJSON(.integer(1))["reason"]?.string == "Fine")
    }

    @Test func aLargeBodyIsAHandle() {
        #expect(result(body: .handle).json["body"]?.text == #"{"type":"handle","fetchId":"f17"}"#)
    }

    @Test func bytesThatAreNotTextAreBase64() {
        #expect(result(body: .inline(BodyValue([0xFF]))).json["body"]?.text == #"{"type":"base64","value":"/w=="}"#)
    }

    @Test func theAuthMemberIsNullWithoutAuthentication() {
        #expect(result(body: .handle).json["auth"]?.isNull == true)
    }

    @Test(arguments: [
        (Duration.microseconds(49), "0.0"), (.microseconds(50), "0.1"), (.microseconds(999_960), "1000.0"),
        (.seconds(86_400), "86400000.0"),
    ])
    func timesAreMillisecondsWithOneDigit(time: Duration, text: String) {
        #expect(result(body: .handle, challengeTime: time).json["timingsMs"]?["challenge"]?.text == text)
    }

    @Test(arguments: [(Duration.seconds(120), 120_000), (.microseconds(1999), 1), (.zero, 0), (.milliseconds(-5), -5)])
    func wholeMillisecondsAreRoundedDown(time: Duration, count: Int) {
        #expect(time.wholeMilliseconds == count)
    }
}
