import Testing

@testable import watchword

@Suite struct ProxyEnvironmentTests {
    private func added(to environment: [String]) -> [String] {
        ProxyEnvironment.added(to: environment, proxy: "http://watchword:t@[::1]:81", "[::1]:81")
    }

    @Test func everySpellingNamesTheProxy() {
        let entries = added(to: [])
        for name in ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
            #expect(entries.contains("\(name)=http://watchword:t@[::1]:81"))
        }
    }

    @Test func oldValuesAreReplacedAndOtherVariablesKept() {
        let entries = added(to: ["http_proxy=old", "no_proxy=h", "A=b=c", "odd"])
        #expect(!entries.contains("http_proxy=old"))
        #expect(entries.prefix(3) == ["no_proxy=h", "A=b=c", "odd"])
    }

    @Test func optionsOfJavaAreExtended() {
        let entries = added(to: ["JAVA_TOOL_OPTIONS=-Xmx1g"])
        let properties = "-Dhttp.proxyHost=[::1] -Dhttp.proxyPort=81 -Dhttps.proxyHost=[::1] -Dhttps.proxyPort=81"
        #expect(entries.filter { $0.hasPrefix("JAVA_TOOL_OPTIONS=") } == ["JAVA_TOOL_OPTIONS=-Xmx1g \(properties)"])
    }
}
