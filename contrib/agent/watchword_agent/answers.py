"""The answers to the broker, as JSON objects."""
from typing import Any, Optional

from .question import Kind, KnownUser, Question
from .secret import Secret

Answer = dict[str, Any]

KEEP_NOT, KEEP_SESSION, KEEP_KEYRING = "none", "forSession", "permanent"


def cancel() -> Answer:
    """Makes the fetch fail."""
    return {"action": "cancel"}


def reject() -> Answer:
    """Rejects the certificate, even if it verifies."""
    return {"action": "reject"}


def continue_without() -> Answer:
    """Continues without a login or client certificate. In a trust question it means that the server is not trusted."""
    return {"action": "continue"}


def leave_it() -> Answer:
    """Leaves the decision to the broker, as if this agent had not been asked."""
    return {"action": "default"}


def use_proposed() -> Answer:
    """Uses the proposed stored credential."""
    return {"action": "credential", "credential": {"type": "proposed"}}


def use_stored(known: KnownUser) -> Answer:
    """Uses one of the stored logins that the challenge lists."""
    return {"action": "credential", "credential": {"type": "stored", "id": known.identifier}}


def password(user: str, secret: Secret, domain: str, keep: str) -> Answer:
    """Provides a user and a password; `domain` is used only for NTLM."""
    credential = {"type": "password", "user": user, "password": secret, "persistence": keep}
    return _credential({**credential, "domain": domain} if domain else credential)


def token(secret: Secret, keep: str) -> Answer:
    """Provides a bearer token."""
    return _credential({"type": "token", "token": secret, "persistence": keep})


def certificate(file: str, key: str, passphrase: Optional[Secret], keep: str) -> Answer:
    """Provides a client certificate: `file` and `key` are absolute paths or `pkcs11:` URIs."""
    credential: Answer = {"type": "certificate", "certificate": file, "persistence": keep}
    if key:
        credential["privateKey"] = key
    if passphrase is not None and len(passphrase):
        credential["passphrase"] = passphrase
    return _credential(credential)


def trust(question: Question, keep: str) -> Answer:
    """Trusts the certificate that was shown. The answer contains the fingerprint of its key, so that it applies to no other key."""
    return _credential({"type": "trust", "spkiSha256": question.chain[0].spki_sha256, "persistence": keep})


def allow(how_long: str) -> Answer:
    """Answers a consent question: `once`, `session`, `always` or `no`."""
    return {"allow": how_long}


def typed(secret: Secret) -> Answer:
    """Answers the prompt of a program with a line."""
    return {"action": "answer", "value": secret}


def confirm() -> Answer:
    """Answers the prompt of a program with yes."""
    return {"action": "allow"}


def refusal(question: Question) -> Answer:
    """Returns the answer that Escape and closing the window give."""
    if question.kind is Kind.CONSENT:
        return allow("no")
    # `reject` fails the fetch with `serverNotTrusted`, even if the certificate verifies.
    return reject() if question.kind is Kind.TRUST else cancel()


def stop_asking(question: Question) -> Answer:
    """Refuses, and stops all prompts for this program."""
    return {**(allow("no") if question.kind is Kind.CONSENT else cancel()), "stopAsking": True}


def is_refusal(answer: Answer) -> bool:
    """Whether the answer releases no credential."""
    return answer.get("action") in ("cancel", "continue", "reject") or answer.get("allow") == "no"


def allowed_persistence(question: Question) -> list[str]:
    """Returns how long the answer may be stored, shortest first; `none` is always included."""
    return [one for one in (KEEP_NOT, KEEP_SESSION, KEEP_KEYRING) if one == KEEP_NOT or one in question.persistence]


def usual_keep(question: Question) -> str:
    """Returns the default among `allowed_persistence`: the session if allowed, but `none` for a trust question."""
    choices = allowed_persistence(question)
    return KEEP_SESSION if KEEP_SESSION in choices and question.kind is not Kind.TRUST else choices[0]


def wipe(answer: Answer) -> None:
    """Overwrites the secrets of an answer that was sent."""
    for value in [answer.get("value"), *(answer.get("credential") or {}).values()]:
        if isinstance(value, Secret):
            value.wipe()


def _credential(credential: Answer) -> Answer:
    return {"action": "credential", "credential": credential}
