"""Guards of the prompts of programs (`prompt/ask`)."""

PROMPTS = [
    ("a-prompt-is-answered-by-one-line", "self.value?.isOneLine == true", "value?.isOneLine != nil",
     "WatchwordProtocolTests.PromptMessagesTests"),
    ("stopped-programs-show-no-prompt", "!questions.prompts.isStopped(program)", '!questions.prompts.isStopped("")',
     "BrokerTests.BrokerProgramPromptTests"),
    ("prompts-of-programs-have-to-wait", "of: program,", 'of: "",', "BrokerTests.BrokerProgramPromptTests"),
    ("prompts-not-its-own", "$0.peer.pid != pid", "pid != 0", "BrokerTests.BrokerProgramPromptTests"),
]
