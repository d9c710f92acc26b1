"""Guards of the order of respondents, and of the fetches that an answer applies to."""

from .statement import STATEMENT

HANDLERS = [
    ("handler-first", STATEMENT, "", "WatchwordCoreTests.FetchHandlerTests"),
    ("handler-passes", ", !passed.contains(.handler)", "", "WatchwordCoreTests.FetchHandlerTests"),
    ("handler-speaks-for-one-fetch", "respondent == .handler ? .passed(declined: []) : ", "",
     "WatchwordCoreTests.FetchHandlerTests"),
    ("handler-decides-what-is-sent", "handler, .handler) || wants(intent.plan.", "", "WatchwordCoreTests.FetchHandlerTests"),
    ("handler-passing-is-of-one-fetch", ".forOtherFetches", "", "WatchwordCoreTests.FetchHandlerTests"),
    ("handler-outlives-subscription", "challenge?.isForHandler != ", "", "Tests/EndToEnd/test_fetch_handlers.py"),
    ("handler-of-who-cannot-answer", "!connection.hasInputEnded", "true", "Tests/EndToEnd/test_fetch_handlers.py"),
    ("handler-is-not-decided-for", "proceed where next == .handler, .", "", "WatchwordCoreTests.FetchHandlerTests"),
    ("handler-decides-on-certificates", "true", "false", "WatchwordCoreTests.FetchHandlerTests"),
    ("handler-makes-the-next-round", STATEMENT, "", "Tests/EndToEnd/test_fetch_handlers.py"),
    ("handler-of-connections", "LeaseSlot(space) != .connection", "space.port >= 0", "WatchwordCoreTests.FetchHandlerTests"),
    ("handler-interaction", "== .ownClient", "!= .none", "Tests/EndToEnd/test_fetch_handlers.py"),
]
