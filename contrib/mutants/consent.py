"""Guards of consent to the use of stored credentials, and of their release."""

from .statement import BODY, STATEMENT

CONSENT = [
    ("consent-before-sending", "fetch.interaction == .none ? false : nil", "true", "WatchwordCoreTests.ConsentTests"),
    ("consent-denied-asks-no-agent", " || consent.isDenied(in: space)", "", "WatchwordCoreTests.ConsentTests"),
    ("consent-no-is-no", "false", "true", "WatchwordCoreTests.ConsentTests"),
    ("consent-keyring", "if candidate.source == .session {", "if candidate.source != .session { return nil }; do {",
     "WatchwordCoreTests.ConsentTests"),
    # Checked twice: when the credential is chosen and when it is sent.
    ("consent-on-the-way", BODY, "true", "WatchwordCoreTests.ConsentTests"),
    ("consent-proposal", " { hop.isConsented($0, in: space, context) }", "", "WatchwordCoreTests.ConsentTests"),
    ("consent-not-more-than-allowed", "allowed.contains(consent)", "!allowed.isEmpty", "WatchwordCoreTests.ConsentTests"),
    ("consent-file", " && file == other.file", "", "WatchwordCoreTests.ConsentTests"),
    ("script-option", "isKnown ?", "isKnown || !argument.isEmpty ?", "BrokerSocketTests.ScriptArgumentTests"),
    ("script-of-the-system", BODY, "isSystemFile", "BrokerSocketTests.SubjectTests"),
    ("consent-ends-with-the-session", STATEMENT, "", "WatchwordCoreTests.ConsentTests"),
    ("consent-not-its-own", "$0.peer.pid != asker", "asker != 0", "BrokerTests.BrokerConsentTests"),
    ("consent-another-program-now", "first.couldStillBe(now)", 'now.text != ""', "BrokerTests.BrokerConsentTests"),
    ("sandbox-methods", BODY, "false", "BrokerTests.BrokerConsentTests"),
    ("sandbox-asks-always", " || subject?.isSandboxed == true", "", "WatchwordCoreTests.ConsentTests"),
    ("sandbox-part", ".subject(subject)", "nil", "WatchwordCoreTests.ConsentTests"),
    ("sandbox-stores-nothing-permanently", BODY, "true", "WatchwordCoreTests.ConsentTests"),
    ("revoked-by-bytes", " == grant.subject.text", ".string == grant.subject.text.string",
     "WatchwordCoreTests.LookalikeProgramTests"),
    ("subject-in-doubt", STATEMENT, "", "BrokerSocketTests.SubjectTests"),
    ("subject-most-restricted", ".filter(\\.isSandboxed)", "", "BrokerSocketTests.SubjectTests"),
    ("subject-of-several-holders", "subjects.count == 1, ", "", "BrokerSocketTests.SubjectTests"),
    ("subject-flatpak-unreadable", "return .unknown", "break", "BrokerSocketTests.SubjectTests"),
    ("sender", "== pid", "> 0", "Tests/EndToEnd/test_consent.py"),
]

RELEASE = [
    # Follows a first check, of the path that the kernel currently reports.
    ("consent-identified-first", STATEMENT, "", "BrokerTests.BrokerConsentTests"),
    ("release-identified-first", " else", " || connection.id.value >= 0 else", "BrokerTests.BrokerHandingOutTests"),
    ("release-hosts", "covers(program, pattern)", "program == program", "Tests/EndToEnd/test_release.py"),
    ("release-program-by-bytes", "ExactText(program) == connection.peer.executable.map({ ExactText($0) })",
     "program == connection.peer.executable",
     "BrokerTests.BrokerHandingOutTests"),
]
