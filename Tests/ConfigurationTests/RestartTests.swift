import Configuration
import Testing
import WatchwordCore
import WatchwordProtocol

@Suite struct RestartTests {
    @Test func onlyOptionsReadAtTheStartNeedARestart() {
        let started = Settings()
        var settings = started
        settings.sharing = .ask
        settings.keyringCall = .seconds(1)
        settings.oauthRules = [OAuthRule(resource: "https://a.example")]
        #expect(settings.optionsThatNeedRestart(since: started) == [])
        settings.tokenModule = "/m.so"
        #expect(settings.optionsThatNeedRestart(since: started) == ["tokens.module"])
        settings.filtersSystemCalls.toggle()
        #expect(
            settings.optionsThatNeedRestart(since: started) == ["tokens.module", "process.filter-system-calls"])
        #expect(started.optionsThatNeedRestart(since: started) == [])
    }
}
