"""Guards of the prompts of programs (`prompt/ask`)."""

from .statement import STATEMENT

PROMPTS = [
    ("a-prompt-is-answered-by-one-line", "self.value?.isOneLine == true", "value?.isOneLine != nil",
     "WatchwordProtocolTests.PromptMessagesTests"),
    ("open-prompts", "< Limits.openChallenges", ">= 0", "BrokerTests.BrokerProgramPromptTests"),
    ("stopped-programs-show-no-prompt", "!questions.prompts.isStopped(program)", '!questions.prompts.isStopped("")',
     "BrokerTests.BrokerProgramPromptTests"),
    ("prompts-of-programs-have-to-wait", "of: program,", 'of: "",', "BrokerTests.BrokerProgramPromptTests"),
    ("queued-prompts-are-checked-again", "prompt.program", '""', "BrokerTests.BrokerProgramPromptTests"),
    ("a-prompt-can-stop-its-program", STATEMENT, "", "BrokerTests.BrokerProgramPromptTests"),
    ("prompts-end-with-their-client", STATEMENT, "", "BrokerTests.BrokerProgramPromptTests"),
    ("prompts-not-its-own", "$0.peer.pid != pid", "pid != 0", "BrokerTests.BrokerProgramPromptTests"),
    ("askpass-of-the-agent", "getenv(Self.agentVariable) == nil", "getenv(Self.agentVariable) != getenv(\"PATH\")",
     "Tests/EndToEnd/test_askpass.py"),
    ("agent-askpass-is-another-program", "os.path.basename(os.path.realpath(self._program)) in _OURS", "False",
     "Tests/EndToEnd/test_agent_prompts.py"),
]
