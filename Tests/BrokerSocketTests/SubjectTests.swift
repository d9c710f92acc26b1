import JSONText
import Testing

@testable import BrokerSocket
@testable import WatchwordProtocol

/// The subject of a client, from the kernel's information (SECURITY-RULES G1 to G10).
@Suite struct SubjectTests {
    private static let info = "[Application]\nname=org.gnome.Maps\nruntime=x\n\n[Instance]\ninstance-id=17\n"

    private func facts(_ change: (inout SubjectFacts) -> Void = { _ in }) -> SubjectFacts {
        var facts = SubjectFacts()
        facts.isCertain = true
        (facts.flatpak, facts.label) = (.absent, .absent)
        facts.program = program("/usr/bin/mytool")
        change(&facts)
        return facts
    }

    private func program(_ path: String, isSystemFile: Bool = true) -> SubjectFacts.Program {
        SubjectFacts.Program(path: path, file: Subject.File(inode: 2, changed: 1), isSystemFile: isSystemFile)
    }

    @Test("Rules I6 and G3: a program is identified by its file, and offered always if only root can write it")
    func aProgramIsIdentifiedByItsFile() {
        let subject = facts().subject
        #expect(subject.text == "exe:/usr/bin/mytool")
        #expect(subject.strength == .weak && !subject.isSandboxed)
        #expect(subject.allowedConsents == [.once, .session, .always])
        let own = facts { $0.program = program("/home/bob/bin/tool", isSystemFile: false) }.subject
        #expect(own.allowedConsents == [.once, .session])
    }

    @Test(
        "Rule I6: an interpreter has no strength",
        arguments: [
            "/usr/bin/python3.11", "/usr/bin/bash", "/usr/bin/node", "/usr/bin/perl5.36.0",
            "/lib64/ld-linux-x86-64.so.2",
            "/usr/bin/ssh", "/usr/bin/env", "/usr/bin/R",
        ])
    func anInterpreterHasNoStrength(path: String) {
        let subject = facts { $0.program = program(path) }.subject
        #expect(subject.text == "exe:\(path)")
        #expect(subject.strength == .none && subject.allowedConsents == [.once])
        #expect(!subject.isSame(as: subject))
    }

    private func script(
        _ path: ExactText = "/usr/bin/report", inode: UInt64 = 5, changed: Int64 = 6, isSystemFile: Bool = true
    ) -> Subject.Script {
        Subject.Script(path: path, file: Subject.File(inode: inode, changed: changed), isSystemFile: isSystemFile)
    }

    private func python(_ script: Subject.Script?, isSystemFile: Bool = true) -> Subject {
        let python = program("/usr/bin/python3.11", isSystemFile: isSystemFile)
        return facts { ($0.program, $0.script) = (python, script) }.subject
    }

    @Test(
        "Rule I7: consent to a script lasts only if other programs of the user can change neither it nor its interpreter"
    )
    func consentToAScriptLastsOnlyIfItCannotBeChanged() {
        let subject = python(script())
        #expect(subject.text == "exe:/usr/bin/python3.11" && subject.strength == .weak)
        #expect(subject.allowedConsents == [.once, .session, .always])
        for unprotected in [python(script(isSystemFile: false)), python(script(), isSystemFile: false), python(nil)] {
            #expect(unprotected.strength == .none && unprotected.allowedConsents == [.once])
            #expect(!unprotected.isSame(as: unprotected) && !unprotected.isSame(as: subject))
            #expect(!subject.isSame(as: unprotected))
        }
        #expect(python(script(isSystemFile: false)).json["script"] == ["path": "/usr/bin/report"])
    }

    @Test("Rules I7 and G7: another script, and a script that has changed, are another program")
    func aScriptThatHasChangedIsAnotherProgram() {
        let subject = python(script())
        #expect(subject.isSame(as: python(script())) && subject.confirmed(by: python(script())) == subject)
        for other in [script("/usr/share/report"), script(inode: 6), script(changed: 7), nil] {
            #expect(!subject.isSame(as: python(other)))
            #expect(subject.confirmed(by: python(other)) == python(nil))
        }
        #expect(python(nil).confirmed(by: subject) == python(nil))
    }

    @Test func anotherFileIsAnotherProgram() {
        let first = facts().subject
        let second = facts { $0.program?.file.inode = 3 }.subject
        #expect(first.isSame(as: first) && !first.isSame(as: second) && !first.couldStillBe(second))
        let overwritten = facts { $0.program?.file.changed = 3 }.subject
        #expect(!first.isSame(as: overwritten) && first.couldStillBe(overwritten))
    }

    @Test("Rules I4 and G1: a Flatpak is identified by its application")
    func aFlatpakIsIdentifiedByItsApplication() {
        let subject = facts { $0.flatpak = .text(Self.info) }.subject
        #expect(subject.text == "flatpak:org.gnome.Maps")
        #expect(subject.strength == .strong && subject.isSandboxed)
    }

    @Test(
        "Rule I4: malformed Flatpak information makes a program unknown",
        arguments: [
            "", "[Application]\nname=org.gnome.Maps\n", "[Instance]\ninstance-id=1\n",
            "[Application]\nname=maps\n[Instance]\ninstance-id=1\n",
            "[Application]\nname=org.gnome.Maps/../x\n[Instance]\ninstance-id=1\n",
            "[Application]\nname=org.1x\n[Instance]\ninstance-id=1\n",
            "[Application]\nname=org.a\nname=org.b\n[Instance]\ninstance-id=1\n",
            "[Runtime]\nname=org.a\n[Instance]\ninstance-id=1\n",
            "[Application]\nname=org..a\n[Instance]\ninstance-id=1\n",
        ])
    func malformedFlatpakInformationMakesAProgramUnknown(text: String) {
        #expect(facts { $0.flatpak = .text(text) }.subject == .unknown)
    }

    @Test("Rule G1: every doubt leads to unknown")
    func everyDoubtLeadsToUnknown() {
        #expect(facts { $0.isCertain = false }.subject == .unknown)
        #expect(facts { $0.flatpak = .unreadable }.subject == .unknown)
        #expect(facts { $0.label = .unreadable }.subject == .unknown)
        #expect(SubjectFacts().subject == .unknown)
        // A Snap could provide the file that identifies a Flatpak.
        let both = facts { ($0.label, $0.flatpak) = (.text("snap.x.y (enforce)"), .text(Self.info)) }
        #expect(both.subject.text == "snap:snap.x.y")
        #expect(Subject.unknown.isSandboxed && Subject.unknown.allowedConsents == [.once])
        #expect(!Subject.unknown.isSame(as: .unknown))
        // The program of this process is hidden, but the process is not sandboxed.
        let hidden = facts { $0.program = nil }.subject
        #expect(hidden.kind == .unknown && !hidden.isSandboxed)
    }

    @Test(
        "Rule I3: an enforced AppArmor label identifies a program",
        arguments: [
            ("snap.firefox.firefox (enforce)", "snap:snap.firefox.firefox", true),
            ("/usr/bin/evince (enforce)", "apparmor:/usr/bin/evince", true),
            ("unconfined", "exe:/usr/bin/mytool", false),
            ("firefox (unconfined)", "exe:/usr/bin/mytool", false),
            ("snap.x.y (complain)", "exe:/usr/bin/mytool", false),
            ("unconfined_u:unconfined_r:unconfined_t:s0", "exe:/usr/bin/mytool", false),
            (" (enforce)", "exe:/usr/bin/mytool", false),
            ("snap.x.y (kill)", "snap:snap.x.y", true),
            ("a b (mixed)", "apparmor:a b", true),
        ])
    func anEnforcedAppArmorLabelIdentifiesAProgram(label: String, text: String, isSandboxed: Bool) {
        let subject = facts { $0.label = .text(label) }.subject
        #expect(subject.text.string == text && subject.isSandboxed == isSandboxed)
        #expect(subject.strength == (isSandboxed ? .strong : .weak))
    }

    @Test(
        "Rule G1: of several holders of one socket the most restricted one counts, and in doubt the program is unknown")
    func ofSeveralHoldersTheMostRestrictedCounts() {
        let tool = facts().subject
        let service = facts { $0.program = program("/usr/bin/dbus-daemon") }.subject
        let maps = facts { $0.flatpak = .text(Self.info) }.subject
        let snap = facts { $0.label = .text("snap.x.y (enforce)") }.subject
        let holders: [([Subject], Subject)] = [
            ([tool], tool), ([tool, tool], tool), ([maps, tool], maps), ([tool, maps, service, maps], maps),
            ([tool, service], Subject(.unknown, "")), ([maps, snap], .unknown), ([maps, .unknown], .unknown),
            ([tool, .unknown], .unknown), ([], .unknown),
        ]
        for (subjects, expected) in holders {
            #expect(SubjectFacts.subject(ofHolders: subjects) == expected, "\(subjects.map(\.text))")
        }
    }

    @Test("Rule I3: the label of the process counts unless that of its socket confines it more")
    func theLabelOfTheProcessCounts() {
        let (free, confined, snap) = (
            SubjectFacts.Label.text("unconfined"), SubjectFacts.Label.text("a (enforce)"),
            SubjectFacts.Label.text("snap.x.y (enforce)")
        )
        let labels: [(process: SubjectFacts.Label, socket: SubjectFacts.Label, SubjectFacts.Label)] = [
            (.absent, .absent, .absent), (confined, .absent, confined), (.absent, confined, confined),
            (free, confined, confined), (confined, free, confined), (confined, snap, snap),
            (free, .unreadable, .unreadable), (.unreadable, .absent, .unreadable), (.unreadable, free, .unreadable),
        ]
        for (process, socket, expected) in labels { #expect(process.or(socket) == expected) }
    }

    @Test(
        "Rule I5: a unit of the user's service manager identifies a program",
        arguments: [
            ("0::/user.slice/user-1000.slice/user@1000.service/app.slice/backup.service\n", "backup.service"),
            (
                "0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-gnome-org.gnome.Maps-4711.scope\n",
                "app-gnome-org.gnome.Maps"
            ),
            ("0::/user.slice/user-1000.slice/user@1000.service/app.slice/vte-spawn-1.scope\n", nil),
            ("0::/user.slice/user-1000.slice/session-2.scope\n", nil),
            ("0::/system.slice/cron.service\n", nil), ("12:pids:/x\n0::/a\n0::/b\n", nil), ("", nil), ("0::/\n", nil),
            ("0::/user.slice/user@1000.service/app.slice/app-x.scope\n", nil),
        ] as [(String, String?)])
    func aUnitOfTheUserIdentifiesAProgram(cgroup: String, unit: String?) {
        #expect(SubjectFacts.unit(cgroup) == unit)
        let subject = facts { $0.cgroup = cgroup }.subject
        #expect(subject.text == unit.map { "unit:\($0)" } ?? "exe:/usr/bin/mytool")
        #expect(subject.allowedConsents == (unit == nil ? [.once, .session, .always] : [.once, .session]))
    }
}
