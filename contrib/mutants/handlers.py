"""Guards of the order of respondents, and of the fetches that an answer applies to."""

from .statement import STATEMENT

HANDLERS = [
    ("handler-first", STATEMENT, "", "WatchwordCoreTests.FetchHandlerTests"),
    ("handler-speaks-for-one-fetch", "respondent == .handler ? .passed(declined: []) : ", "",
     "WatchwordCoreTests.FetchHandlerTests"),
    ("handler-decides-what-is-sent", "handler, .handler) || wants(fetch.", "", "WatchwordCoreTests.FetchHandlerTests"),
    ("handler-decides-on-certificates", "true", "false", "WatchwordCoreTests.FetchHandlerTests"),
]
