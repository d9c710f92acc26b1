import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// The signals of the keyring that are reported as changes.
@Suite struct KeyringWatchTests {
    private func item(_ id: String, _ scheme: ExactText = "https", isLocked: Bool = false) -> KeyringItem {
        KeyringItem(
            id: id, label: "",
            attributes: KeyringAttributes.everything.merging(
                ["server": "h", "protocol": scheme, "user": "bob"]) { own, _ in own },
            secret: nil, isLocked: isLocked)
    }

    /// Returns the changes that result from the pending signals if the keyring has `items`.
    private func changes(_ watch: inout KeyringWatch, _ items: KeyringItem...) -> [KeyringChange] {
        var changes: [KeyringChange] = []
        while let signal = watch.next() {
            let change = watch.change(signal, items.first { $0.id == signal.item })
            if let change { changes.append(change) }
        }
        return changes
    }

    private func note(_ watch: inout KeyringWatch, _ kind: KeyringWatch.Signal.Kind, _ item: String = "/1") {
        watch.record(KeyringWatch.Signal(kind, item), now: .zero)
    }

    @Test func everyChangeOfAnotherProgramIsReported() {
        var watch = KeyringWatch()
        for kind in [KeyringWatch.Signal.Kind.created, .changed] {
            note(&watch, kind)
            #expect(changes(&watch, item("/1")) == [.stored(item("/1"))])
        }
        note(&watch, .deleted)
        #expect(changes(&watch) == [.removed])
    }

    @Test func severalSignalsAboutOneChangeAreReportedOnce() {
        var watch = KeyringWatch()
        for kind in [KeyringWatch.Signal.Kind.created, .changed, .changed] { note(&watch, kind) }
        #expect(changes(&watch, item("/1")).count == 1)
    }

    @Test func itemsThatAreNotHTTPLoginsAreNotReported() {
        var watch = KeyringWatch()
        var generic = item("/1")
        generic.attributes["xdg:schema"] = nil
        for other in [item("/1", "ftp"), generic] {
            note(&watch, .created)
            #expect(changes(&watch, other).isEmpty)
            note(&watch, .deleted)
            #expect(changes(&watch).isEmpty)
        }
    }

    @Test func anItemThatIsNoLongerALoginIsReportedAsRemoved() {
        var watch = KeyringWatch()
        watch.learn(unlocked: ["/1"], locked: [])
        note(&watch, .changed)
        #expect(changes(&watch, item("/1", "ftp")) == [.removed])
        note(&watch, .deleted)
        #expect(changes(&watch).isEmpty)
    }

    @Test func itemsThatExistedAtTheStartAreKnown() {
        var watch = KeyringWatch()
        watch.learn(unlocked: ["/1"], locked: ["/2"])
        note(&watch, .deleted)
        note(&watch, .deleted, "/2")
        note(&watch, .deleted, "/3")
        #expect(changes(&watch) == [.removed, .removed])
    }

    @Test func lockingAndUnlockingIsNotReported() {
        var watch = KeyringWatch()
        watch.learn(unlocked: ["/1"], locked: ["/2"])
        note(&watch, .changed)
        #expect(changes(&watch, item("/1", isLocked: true)).isEmpty)
        note(&watch, .changed)
        note(&watch, .changed, "/2")
        #expect(changes(&watch, item("/1"), item("/2")).isEmpty)
        note(&watch, .changed)
        #expect(changes(&watch, item("/1")) == [.stored(item("/1"))])
    }

    @Test func ownChangesAreNotReported() {
        var watch = KeyringWatch()
        note(&watch, .created, "/2")
        watch.beginOwnChange()
        note(&watch, .created)
        note(&watch, .changed)
        note(&watch, .changed, "/2")
        note(&watch, .created, "/3")
        watch.endOwnChange(of: "/1", isThere: true, now: .zero)
        #expect(
            changes(&watch, item("/1"), item("/2"), item("/3"))
                == [.stored(item("/2")), .stored(item("/2")), .stored(item("/3"))])
        note(&watch, .deleted)
        #expect(changes(&watch) == [.removed])
    }

    @Test func aLateSignalOfAnOwnChangeIsNotReported() {
        var watch = KeyringWatch()
        watch.beginOwnChange()
        watch.endOwnChange(of: "/1", isThere: true, now: .zero)
        watch.record(KeyringWatch.Signal(.created, "/1"), now: .milliseconds(900))
        #expect(changes(&watch, item("/1")).isEmpty)
        watch.record(KeyringWatch.Signal(.changed, "/1"), now: .milliseconds(1100))
        #expect(changes(&watch, item("/1")).count == 1)
    }

    @Test func aChangeThatFailedHidesNothing() {
        var watch = KeyringWatch()
        watch.beginOwnChange()
        note(&watch, .created)
        watch.endOwnChange(of: nil, isThere: false, now: .zero)
        note(&watch, .changed, "/2")
        #expect(changes(&watch, item("/1"), item("/2")).count == 2)
    }
}
