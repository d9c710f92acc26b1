"""Guards of shared logins: which fetch tries a credential, which others use it, and which credentials are forgotten meanwhile."""

from .statement import BODY, STATEMENT

LOGINS = [
    ("ticket-bound", STATEMENT, "attempt.serverEndPoint = nil", "WatchwordCoreTests.HandshakeFetchTests"),
    ("attempt-aged", BODY, "Limits.unprovenAttempts", "WatchwordCoreTests.AgedCredentialTests"),
    ("attempt-preemptive", "]", "], attempt.isAccepted", "WatchwordCoreTests.AgedCredentialTests"),
    ("attempt-doubted", " || entry.value.isDoubted", "", "WatchwordCoreTests.AgedCredentialTests"),
    ("no-challenge-ends-those-that-wait", STATEMENT, "", "WatchwordCoreTests.NoChallengeTests"),
    ("no-challenge-not-sent-unasked-again", " || entry.value.isWithheld(at: path)", "", "WatchwordCoreTests.NoChallengeTests"),
    ("attempt-refused-by-socks", "failure.cause != .proxyLoginRefused", "true", "WatchwordCoreTests.AgedCredentialTests"),
    ("login-again-refused-meanwhile", "isRefusedMeanwhile(attempt, hop, context)", "attempt.isPreemptive && attempt.isAccepted",
     "WatchwordCoreTests.AgedCredentialTests"),
    ("needs-new-login", " || use == .kept(hasLogin: true)", "", "TransfersTests.NTLMAttemptOnTheWireTests"),
    ("attempt-lost", "failure.mayHaveSentLogin ? .lost : .none", ".none",
     "WatchwordCoreTests.AgedCredentialTests"),
    ("answer-for-this-time", "(let credential, _): credential.persistence != .none", ": true",
     "WatchwordCoreTests.CoalescingTests"),
    ("exception-for-this-time", "(let decision): decision.persistence != .none", ": true", "WatchwordCoreTests.CoalescingTests"),
    ("forget-login-under-way", "if isCurrent", "do", "WatchwordCoreTests.ForgettingTests"),
    ("forget-trust", STATEMENT, "mark <= context.forgets.mark", "WatchwordCoreTests.ForgettingTests"),
    ("forget-keyring-write", " else", " || pattern.port > 0 else", "BrokerTests.BrokerForgettingTests"),
]
