"""Questions that wait: for whom, for how long, and what comes of it when nobody answers."""

from .paths import CORE, FETCH, SOCKET

WAITING = [
    ("silence-sends-nothing", FETCH + "FetchMachine+Choosing.swift",
     "        if question.declined.isAbandoned { return askOthers(question, environment, &memory) }\n", "",
     "WatchwordCoreTests.UnansweredTests"),
    ("silence-is-inherited-by-the-same-client-only", "Sources/WatchwordCore/Turns/SpaceTurns.swift",
     "isSame ? declined : declined.forOtherClients", "declined", "WatchwordCoreTests.UnansweredTests"),
    ("silence-about-storage", FETCH + "FetchMachine+Unanswered.swift",
     "        storageAnswer = false\n", "        if case .useStorage = consultation { storageAnswer = false }\n",
     "WatchwordCoreTests.UnansweredTests"),
    ("fetches-end-together", FETCH + "FetchTable.swift",
     "        for id in ids { machines[id]?.leaveQueue(&memory) }\n", "", "WatchwordCoreTests.UnansweredTests"),
    ("silence-is-no-default", "Sources/Broker/Broker+Answers.swift",
     "            passOn(challengeID, because: .failed)", "            accept(.useDefault, to: challengeID, from: connection)",
     "BrokerTests.BrokerUnansweredTests"),
    ("a-peer-that-is-gone-is-told-from-one-that-reads", SOCKET + "ConnectionHandler.swift",
     "guard PeerHangUp.isSeen(on: context.channel) else { return service.inputEnded(id) }",
     "guard !PeerHangUp.isSeen(on: context.channel) || id.value > 0 else { return }\n        if id.value > 0 { return service.inputEnded(id) }",
     "Tests/EndToEnd/test_dying_clients_credentials.py"),
    ("one-question-at-a-time", CORE + "Connection/QuestionQueue.swift",
     "waiting.isEmpty && count < limit ?? .max", "waiting.isEmpty && count < limit ?? .max || limit != nil",
     "BrokerTests.BrokerQueueTests"),
    ("the-queue-keeps-its-order", CORE + "Connection/QuestionQueue.swift",
     "{ waiting.isEmpty && count", "{ count", "WatchwordCoreTests.QuestionQueueTests"),
    ("queued-questions-move-on", "Sources/Broker/Broker+Asking.swift",
     "connection.challenges.all.map(\\.challengeID) + connection.queue.waiting", "connection.challenges.all.map(\\.challengeID)",
     "BrokerTests.BrokerQueueTests"),
]
