"""Logins that many fetches share: who tries a credential, whom it serves, and what is forgotten meanwhile."""

from .paths import CORE, FETCH, TRANSFERS

LOGINS = [
    ("trial-aged", FETCH + "Attempt.swift",
     "provenAt.map { now - $0 < Limits.acceptanceAge } ?? false", "provenAt.map { now >= $0 } ?? false",
     "WatchwordCoreTests.AgedCredentialTests"),
    ("trial-preemptive", FETCH + "FetchMachine+Hops.swift",
     "        if let step = awaitVerdict(environment, &memory) { return step }\n", "",
     "WatchwordCoreTests.AgedCredentialTests"),
    ("trial-refused-meanwhile", FETCH + "FetchMachine+Credentials.swift",
     "            !memory.refusals.hasRefused(entry.credential, in: entry.space, since: lastRefusalBefore),\n", "",
     "WatchwordCoreTests.AgedCredentialTests"),
    ("trial-doubted", CORE + "Session/SessionCache.swift",
     "guard !entry.isHandshake, !entry.isDoubted, let length", "guard !entry.isHandshake, let length",
     "WatchwordCoreTests.AgedCredentialTests"),
    ("trial-kept-connection", FETCH + "FetchMachine+Hops.swift",
     "let isProven = !attempt.challenge.isHandshake || !response.usedKeptConnection", "let isProven = true",
     "WatchwordCoreTests.AgedCredentialTests"),
    ("trial-new-connection", TRANSFERS + "RequestOptions.swift",
     "        if request.needsNewConnection { try set(CURLOPT_FRESH_CONNECT, true) }\n", "",
     "TransfersTests.IdentityPoolTests"),
    ("trial-patience", CORE + "Turns/SpaceTurns.swift",
     "let patience = isKnown ? Limits.knownVerdictWait : Limits.verdictWait",
     "let patience = isKnown ? Limits.verdictWait : Limits.verdictWait", "WatchwordCoreTests.AgedCredentialTests"),
    ("trial-one-after-the-other", CORE + "Turns/CredentialTrials.swift",
     "        trials[known].lastSent = now\n", "", "WatchwordCoreTests.CredentialTrialTests"),
]
