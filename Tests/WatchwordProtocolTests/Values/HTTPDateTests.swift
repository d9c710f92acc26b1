import Testing

@testable import WatchwordProtocol

/// Dates of header fields (RFC 9110 section 5.6.7).
@Suite struct HTTPDateTests {
    @Test(arguments: [
        ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777), ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("Thu, 29 Feb 2024 23:59:59 GMT", 1_709_251_199), ("Wed, 31 Dec 1969 23:59:59 GMT", -1),
        ("Tue, 19 Jan 2038 03:14:08 GMT", 2_147_483_648),
    ])
    func readsTheOneFormatOfSenders(text: String, seconds: Int) {
        #expect(HTTPDate.seconds(text) == seconds)
    }

    @Test(arguments: [
        "", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 CET", "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994", "Sun, 06 nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49 GMT",
        "Sun, 06 Nov 1994 08:49:x GMT", "Sun, 06 Nov 0094 08:49:37 GMT", "Sun 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 99999999999 08:49:37 GMT", "784111777",
    ])
    func refusesOtherTexts(text: String) {
        #expect(HTTPDate.seconds(text) == nil)
    }
}
