import Testing
import WatchwordCore
import WatchwordProtocol

@Suite struct PassphraseLockTests {
    @Test func aLockWithoutAPassphraseOpensWithAny() {
        var lock = PassphraseLock()
        #expect(lock.set(nil) == true)
        #expect(lock.attemptUnlock(with: nil, now: .zero) == .open)
        #expect(lock.attemptUnlock(with: secret("some"), now: .zero) == .open)
    }

    @Test func theRightPassphraseRemovesTheLock() {
        var lock = PassphraseLock()
        #expect(lock.set(secret("right")) == true)
        #expect(lock.attemptUnlock(with: nil, now: .zero) == .wanted)
        #expect(lock.attemptUnlock(with: secret("right"), now: .zero) == .open)
        #expect(lock.attemptUnlock(with: nil, now: .zero) == .open)
    }

    @Test func aSecondPassphraseDoesNotReplaceTheFirst() {
        var lock = PassphraseLock()
        for passphrase in [secret("first"), nil, secret("first")] { #expect(lock.set(passphrase) == true) }
        #expect(lock.set(secret("second")) == false)
        #expect(lock.attemptUnlock(with: secret("second"), now: .zero) == .wrong(wait: .seconds(1)))
        #expect(lock.attemptUnlock(with: secret("first"), now: .seconds(1)) == .open)
    }

    @Test func eachWrongPassphraseDoublesTheWait() {
        var lock = PassphraseLock()
        #expect(lock.set(secret("right")) == true)
        var now = Duration.zero
        for wait in [1, 2, 4, 8, 16, 32, 60, 60, 60] {
            #expect(lock.attemptUnlock(with: secret("wrong"), now: now) == .wrong(wait: .seconds(wait)))
            // Before that, even the right passphrase is not checked.
            let early = now + .seconds(wait) - .milliseconds(1)
            #expect(lock.attemptUnlock(with: secret("right"), now: early) == .tooSoon(wait: .milliseconds(1)))
            // Locking again does not shorten the wait.
            for passphrase in [nil, secret("right")] { #expect(lock.set(passphrase) == true) }
            now += .seconds(wait)
        }
        #expect(lock.attemptUnlock(with: secret("right"), now: now) == .open)
        #expect(lock.set(secret("right")) == true)
        #expect(lock.attemptUnlock(with: secret("wrong"), now: now) == .wrong(wait: .seconds(1)))
    }
}
