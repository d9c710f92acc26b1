import Testing
import WatchwordCore
import WatchwordProtocol

@Suite struct PassphraseLockTests {
    @Test func withoutAPassphraseAnybodyOpens() {
        var lock = PassphraseLock()
        #expect(lock.set(nil) == true)
        #expect(lock.tryToOpen(with: nil, now: .zero) == .open)
        #expect(lock.tryToOpen(with: secret("some"), now: .zero) == .open)
    }

    @Test func theRightOneOpensOnce() {
        var lock = PassphraseLock()
        #expect(lock.set(secret("right")) == true)
        #expect(lock.tryToOpen(with: nil, now: .zero) == .wanted)
        #expect(lock.tryToOpen(with: secret("right"), now: .zero) == .open)
        #expect(lock.tryToOpen(with: nil, now: .zero) == .open)
    }

    @Test func anotherOneDoesNotTakeItsPlace() {
        var lock = PassphraseLock()
        for passphrase in [secret("first"), nil, secret("first")] { #expect(lock.set(passphrase) == true) }
        #expect(lock.set(secret("second")) == false)
        #expect(lock.tryToOpen(with: secret("second"), now: .zero) == .wrong(wait: .seconds(1)))
        #expect(lock.tryToOpen(with: secret("first"), now: .seconds(1)) == .open)
    }

    @Test func eachWrongOneMakesTheNextWaitLonger() {
        var lock = PassphraseLock()
        #expect(lock.set(secret("right")) == true)
        var now = Duration.zero
        for wait in [1, 2, 4, 8, 16, 32, 60, 60, 60] {
            #expect(lock.tryToOpen(with: secret("wrong"), now: now) == .wrong(wait: .seconds(wait)))
            // Not even the right one is looked at before.
            let early = now + .seconds(wait) - .milliseconds(1)
            #expect(lock.tryToOpen(with: secret("right"), now: early) == .tooSoon(wait: .milliseconds(1)))
            // Locking again does not shorten it.
            for passphrase in [nil, secret("right")] { #expect(lock.set(passphrase) == true) }
            now += .seconds(wait)
        }
        #expect(lock.tryToOpen(with: secret("right"), now: now) == .open)
        #expect(lock.set(secret("right")) == true)
        #expect(lock.tryToOpen(with: secret("wrong"), now: now) == .wrong(wait: .seconds(1)))
    }
}
