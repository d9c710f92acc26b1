"""What is said to the broker."""
from typing import Any, Optional

from .question import Kind, KnownUser, Question
from .secret import Secret

Answer = dict[str, Any]

KEEP_NOT, KEEP_SESSION, KEEP_KEYRING = "none", "forSession", "permanent"


def cancel() -> Answer:
    """The fetch is to fail."""
    return {"action": "cancel"}


def reject() -> Answer:
    """This certificate is not to be trusted, whatever verification says of it."""
    return {"action": "reject"}


def go_on_without() -> Answer:
    """The fetch goes on without logging in, or without a certificate; a server is then not trusted."""
    return {"action": "continue"}


def leave_it() -> Answer:
    """As though nobody had been asked."""
    return {"action": "default"}


def use_proposed() -> Answer:
    """What is stored, and was proposed."""
    return {"action": "credential", "credential": {"type": "proposed"}}


def use_stored(known: KnownUser) -> Answer:
    """One of the stored logins that the challenge lists."""
    return {"action": "credential", "credential": {"type": "stored", "id": known.identifier}}


def password(user: str, secret: Secret, domain: str, keep: str) -> Answer:
    """User and password; the domain is for NTLM."""
    credential = {"type": "password", "user": user, "password": secret, "persistence": keep}
    return _credential({**credential, "domain": domain} if domain else credential)


def token(secret: Secret, keep: str) -> Answer:
    """A bearer token."""
    return _credential({"type": "token", "token": secret, "persistence": keep})


def certificate(file: str, key: str, passphrase: Optional[Secret], keep: str) -> Answer:
    """A client certificate: absolute paths, or `pkcs11:` URIs."""
    credential: Answer = {"type": "certificate", "certificate": file, "persistence": keep}
    if key:
        credential["privateKey"] = key
    if passphrase is not None and len(passphrase):
        credential["passphrase"] = passphrase
    return _credential(credential)


def trust(question: Question, keep: str) -> Answer:
    """The certificate that was shown is good enough; its key is named, so that it can be no other."""
    return _credential({"type": "trust", "spkiSha256": question.chain[0].spki_sha256, "persistence": keep})


def allow(how_long: str) -> Answer:
    """Consent, or `no`."""
    return {"allow": how_long}


def refusal(question: Question) -> Answer:
    """What Escape and the closing of a window mean."""
    if question.kind is Kind.CONSENT:
        return allow("no")
    # Also where nothing is wrong with the certificate; the program hears `serverNotTrusted`, which is what happened.
    return reject() if question.kind is Kind.TRUST else cancel()


def stop_asking(question: Question) -> Answer:
    """Refused, and people are to be asked nothing any more for this program."""
    return {**(allow("no") if question.kind is Kind.CONSENT else cancel()), "stopAsking": True}


def is_refusal(answer: Answer) -> bool:
    """Whether nothing was given away."""
    return answer.get("action") in ("cancel", "continue", "reject") or answer.get("allow") == "no"


def kept_for(question: Question) -> list[str]:
    """For how long the answer may be kept, the shortest first; "not at all" is always possible."""
    return [one for one in (KEEP_NOT, KEEP_SESSION, KEEP_KEYRING) if one == KEEP_NOT or one in question.persistence]


def usual_keep(question: Question) -> str:
    """What is chosen unless the person says otherwise: an exception for a certificate is for once."""
    choices = kept_for(question)
    return KEEP_SESSION if KEEP_SESSION in choices and question.kind is not Kind.TRUST else choices[0]


def wipe(answer: Answer) -> None:
    """Overwrites the secrets in an answer that was sent."""
    for value in (answer.get("credential") or {}).values():
        if isinstance(value, Secret):
            value.wipe()


def _credential(credential: Answer) -> Answer:
    return {"action": "credential", "credential": credential}
