"""Who is asked, in which order, and for whom an answer holds."""

from .paths import CORE, FETCH

HANDLERS = [
    ("handler-first", FETCH + "FetchMachine+Asking.swift",
     "        if let handler = plan.handler, handler.covers(space), !question.declined.contains(.handler) { return .handler }\n", "",
     "WatchwordCoreTests.FetchHandlerTests"),
    ("handler-passes", FETCH + "FetchMachine+Asking.swift",
     "handler.covers(space), !question.declined.contains(.handler) {", "handler.covers(space) {", "WatchwordCoreTests.FetchHandlerTests"),
    ("handler-speaks-for-one-fetch", FETCH + "FetchMachine+Asking.swift",
     "release(respondent == .handler ? .passed(declined: []) : outcome, slot, &memory)", "release(outcome, slot, &memory)",
     "WatchwordCoreTests.FetchHandlerTests"),
    ("handler-decides-what-is-sent", FETCH + "FetchMachine+Asking.swift",
     "let handlers = [(Respondent.handler, plan.handler), (.client, plan.subscription)]",
     "let handlers = [(Respondent.client, plan.subscription)]", "WatchwordCoreTests.FetchHandlerTests"),
    ("handler-passing-is-of-one-fetch", CORE + "Turns/SpaceTurns.swift",
     "isSame ? declined.forOtherFetches : declined.forOtherClients", "isSame ? declined : declined.forOtherClients",
     "WatchwordCoreTests.FetchHandlerTests"),
    ("handler-outlives-subscription", "Sources/Broker/Broker+Subscribing.swift",
     "{ !question.challenge.isForHandler } else { false }", "{ true } else { false }", "Tests/EndToEnd/test_fetch_handlers.py"),
    ("handler-of-who-cannot-answer", "Sources/Broker/Broker+Asking.swift",
     "? !connection.hasInputEnded : fetch", "? true : fetch", "Tests/EndToEnd/test_fetch_handlers.py"),
    ("handler-interaction", "Sources/WatchwordProtocol/Messages/FetchRunParams.swift",
     "guard handler == nil || interaction == .ownClient else {", "guard handler == nil || interaction != .none else {",
     "Tests/EndToEnd/test_fetch_handlers.py"),
]
