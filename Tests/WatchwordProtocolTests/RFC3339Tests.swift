import Testing
import WatchwordProtocol

/// RFC 3339 section 5.6.
@Suite struct RFC3339Tests {
    @Test(
        arguments: [
            ("1970-01-01T00:00:00Z", 0), ("1970-01-01t00:00:01.5z", 1500), ("1970-01-01T01:00:00+01:00", 0),
            ("1969-12-31T19:00:00-05:00", nil), ("1970-01-01T00:00:00-05:00", 18_000_000),
            ("1970-01-01T00:00:00.123456Z", 123),
            ("1970-01-01T00:00:00", nil), ("1970-01-01T00:00Z", nil), ("1970-01-01Z", nil),
            ("1970-01-01T00:00:00.Z", nil),
            ("1970-01-01T00:00:00+0100", nil), ("1970-01-01T00:00:00+24:00", nil), ("1970-02-30T00:00:00Z", nil),
            ("", nil),
            ("1970-01-01T00:00:00.1x3Z", nil),
        ] as [(String, Int?)])
    func timesAreReadWithTheirOffset(text: String, milliseconds: Int?) {
        #expect(UTCTime.rfc3339(text) == milliseconds)
    }
}
