import Testing
import WatchwordCore

/// One answer is one attempt: one type 1 message and one type 3 message (SECURITY-RULES N8).
@Suite struct NTLMAttemptTests {
    private enum Step {
        case connect
        case response(NTLMField?)
        case other(NTLMField)
    }

    private func end(_ steps: Step...) -> NTLMAttempt.End? {
        var attempt = NTLMAttempt()
        for step in steps {
            switch step {
            case .connect: #expect(attempt.connect() == (attempt.end == nil))
            case .response(let field):
                attempt.beginResponse()
                if let field { attempt.receive(field, isChallenge: true) }
            case .other(let field):
                attempt.beginResponse()
                attempt.receive(field, isChallenge: false)
            }
        }
        return attempt.end
    }

    @Test func aLoginOfThreeMessagesContinues() {
        #expect(end(.connect, .response(.challenge), .response(nil)) == nil)
        #expect(end(.connect, .response(.challenge), .response(.bare)) == nil, "libcurl delivers a refusal by itself")
        #expect(end(.connect, .connect, .response(.challenge)) == nil, "two addresses are tried")
        #expect(end(.connect, .response(nil), .response(.challenge)) == nil, "the proxy's login comes first")
    }

    @Test func anExistingConnectionMayLogInAgain() {
        #expect(end(.response(nil)) == nil)
        #expect(end(.response(.bare), .response(.challenge), .response(nil)) == nil)
        #expect(end(.response(.bare), .connect, .response(.challenge)) == nil)
        #expect(end(.response(.bare), .response(.bare)) == .notContinued)
    }

    @Test("Rule N8: a second challenge is a refusal")
    func aSecondChallengeIsARefusal() {
        #expect(end(.connect, .response(.challenge), .response(.challenge)) == .refused)
        #expect(end(.connect, .response(.challenge), .other(.challenge)) == .refused)
        var attempt = NTLMAttempt()
        _ = attempt.connect()
        attempt.beginResponse()
        attempt.receive(.challenge, isChallenge: true)
        attempt.beginResponse()
        for _ in 0..<2 { attempt.receive(.bare, isChallenge: true) }
        #expect(attempt.end == .refused, "two offers in one response make libcurl start again")
    }

    @Test("Rule N8: no attempt starts again")
    func noAttemptStartsAgain() {
        #expect(end(.connect, .response(.bare)) == .notContinued)
        #expect(end(.connect, .response(nil), .connect) == .notContinued)
        #expect(end(.connect, .response(.challenge), .connect) == .notContinued)
        #expect(end(.connect, .response(.challenge), .response(.bare), .connect) == .notContinued)
    }

    @Test func anUnansweredChallengeIsNotARefusal() {
        var attempt = NTLMAttempt()
        _ = attempt.connect()
        attempt.beginResponse()
        for _ in 0..<2 { attempt.receive(.challenge, isChallenge: true) }
        attempt.receive(.bare, isChallenge: true)
        #expect(attempt.end == nil && attempt.endOfTransfer == .notContinued)
        attempt.beginResponse()
        #expect(attempt.endOfTransfer == nil)
    }

    @Test func anUnusableChallengeEndsTheAttemptAtAnyTime() {
        let weak = NTLMField.unusable(.noExtendedSecurity)
        for before in [[Step.connect], [.connect, .response(.challenge)], []] {
            var attempt = NTLMAttempt()
            for step in before {
                if case .connect = step {
                    _ = attempt.connect()
                } else {
                    attempt.receive(.challenge, isChallenge: true)
                }
            }
            attempt.receive(weak, isChallenge: false)
            #expect(attempt.end == .unusable(.noExtendedSecurity))
            attempt.receive(.challenge, isChallenge: true)
            #expect(attempt.end == .unusable(.noExtendedSecurity), "the first reason stays")
        }
    }

    @Test func anOrdinaryResponseThatNamesTheSchemeIsIgnored() {
        #expect(end(.connect, .response(.challenge), .other(.bare), .other(.bare)) == nil)
        #expect(end(.connect, .other(.bare)) == nil)
    }
}
