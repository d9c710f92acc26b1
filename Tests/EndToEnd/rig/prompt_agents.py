"""A scripted agent for the prompts of programs (`auth/prompt`)."""
import queue

#: The time limit for a prompt that is expected.
WAIT_SECONDS = 30


class PromptAgent:
    """A client of the broker that is registered as an agent for prompts, and that records them."""

    def __init__(self, client, **more):
        self.client = client
        registered = client.call("agent/register", {"name": "scripted", "asksPrompt": True, **more})
        assert "result" in registered, registered

    def next(self, method="auth/prompt"):
        """Returns the next request or notification of this method."""
        while True:
            message = self.client.notifications.get(timeout=WAIT_SECONDS)
            if message["method"] == method:
                return message

    def asked(self):
        """Returns the prompts that have arrived and were not taken yet."""
        found = []
        while True:
            try:
                message = self.client.notifications.get_nowait()
            except queue.Empty:
                return found
            if message["method"] == "auth/prompt":
                found.append(message)

    def answer(self, prompt, value):
        self.client.reply(prompt, {"action": "answer", "value": value})

    def allow(self, prompt):
        self.client.reply(prompt, {"action": "allow"})

    def cancel(self, prompt, **more):
        self.client.reply(prompt, {"action": "cancel", **more})
