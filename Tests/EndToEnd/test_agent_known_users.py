"""The stored logins that a challenge lists, as values: parsed, asked once, and chosen without windows."""
import pytest

from test_agent import Dialogue, question

from watchword_agent.fallbacks.conversation import converse
from watchword_agent.question_queue import QuestionQueue, Recount


def known(*users):
    return [{"id": f"session:{number}", "user": user, "source": "session"} for number, user in enumerate(users)]


def test_known_users_are_read_and_malformed_ones_are_ignored():
    asked = question("auth.challenge/known-users")
    assert [(one.name, one.source) for one in asked.known_users] == [("alice", "keyring"), ("CORP\\bob", "session")]
    odd = question("auth.challenge/known-users", knownUsers=[7, {"id": 1, "user": "a"}, {"id": "session:1"}, *known("eve")])
    assert [one.user for one in odd.known_users] == ["eve"]
    assert question("auth.challenge/known-users", knownUsers={"id": "x"}).known_users == ()


def test_questions_with_different_known_users_are_asked_separately():
    queue = QuestionQueue()
    queue.arrived(question("auth.challenge/known-users", number=1))
    assert queue.arrived(question("auth.challenge/known-users", number=2)) == []
    assert queue.arrived(question("auth.challenge/known-users", number=3, knownUsers=known("eve"))) == [Recount(1)]


@pytest.mark.parametrize("user, is_apart", [("bob", False), ("BOB", True), ("carol", True)])
def test_a_proposed_user_is_offered_separately_unless_it_is_known(user, is_apart):
    proposed = {"user": user, "hasPassword": True, "source": "keyring"}
    assert question("auth.challenge/known-users", proposedCredential=proposed).is_proposal_apart is is_apart


@pytest.mark.parametrize("name, identifier", [
    ("alice", "session:0"), ("CORP\\bob", "session:2"), ("\u212a", "session:1"), ("caf\u00e9", "session:3"),
    ("bob", None), ("ALICE", None), ("k", None), ("K", None), ("cafe\u0301", None), (" alice", None)])
def test_without_windows_the_name_of_a_saved_login_is_enough(name, identifier):
    """Names are compared byte by byte: another user may have a name that looks the same."""
    listed = known("alice", "\u212a", "bob", "caf\u00e9")
    listed[2]["domain"] = "CORP"
    dialogue = Dialogue(name, "secret")
    answer = converse(question("auth.challenge/known-users", knownUsers=listed), dialogue)
    if identifier:
        assert answer == {"action": "credential", "credential": {"type": "stored", "id": identifier}}
        assert dialogue.prompts == ["User"]
    else:
        assert (answer["credential"]["type"], answer["credential"]["user"]) == ("password", name)
