"""Guards of waiting questions: their fetches, deadlines, and results without an answer."""

from .statement import BODY, STATEMENT

WAITING = [
    ("silence-sends-nothing", "isAbandoned || ", "", "WatchwordCoreTests.UnansweredTests"),
    ("silence-is-inherited-by-the-same-client-only", "forOtherClients", "forOtherFetches", "WatchwordCoreTests.UnansweredTests"),
    ("silence-about-storage", "nil", "nil, case .useStorage = consultation", "WatchwordCoreTests.UnansweredTests"),
    ("silence-is-no-default", "advanceQuestion(id, because: .failed", "accept(AgentAnswer(.useDefault), to: id, from: connection",
     "BrokerTests.BrokerUnansweredTests"),
    ("stopped-programs-are-not-asked-about", "prompts.isStopped(fetch.program)", "fetch.program.isEmpty",
     "BrokerTests.BrokerStoppingTests"),
    ("stopped-programs-get-no-consent", "rules.stopped.contains(program)", "program.isEmpty", "BrokerTests.BrokerStoppingTests"),
    ("stopping-is-for-agents", STATEMENT,
     "let answer = id.isEmpty ? AgentAnswer(try ChallengeAnswer(json)) : try AgentAnswer(json)",
     "BrokerTests.BrokerStoppingTests"),
    ("a-malformed-reply-is-no-cancel", 'receive(RPCError(.invalidRequest, "malformed reply"),',
     "accept(AgentAnswer(.cancel), to:",
     "BrokerTests.BrokerPromptTests"),
    ("a-cancel-is-remembered", BODY, "false", "BrokerTests.BrokerPromptTests"),
    ("cancelled-questions-have-to-wait", BODY, "nil", "WatchwordCoreTests.PromptLimiterTests"),
    ("all-sites-of-a-program-count-together", STATEMENT, "", "WatchwordCoreTests.PromptLimiterTests"),
]
