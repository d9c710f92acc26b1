"""A question as a row of small ones, for ways of asking that have one field at a time."""
from typing import Optional

from .. import answers, certificate_files, texts
from ..question import Kind, Question
from .dialogue import Dialogue


def converse(question: Question, dialogue: Dialogue) -> answers.Answer:
    """Asks all that is needed. What was cancelled is refused."""
    answer = _ASK[question.kind](question, dialogue)
    return answers.refusal(question) if answer is None else answer


def introduction(question: Question) -> str:
    """What the windows say, in lines."""
    requester = question.requester
    lines: list[Optional[str]] = [
        texts.heading(question), texts.server_says(question), texts.failures(question), texts.downgrade(question)]
    if question.kind is Kind.TRUST:
        lines += [*texts.problems(question), *_certificate(question)]
    elif question.kind is Kind.CONSENT:
        lines += [f"Log-in: {texts.wanted(question)}", f"At: {texts.place(question.space)}", f"{texts.strength(question)}."]
    elif question.kind is Kind.CERTIFICATE:
        lines += ["It takes those of:", *(f"  {one}" for one in texts.issuers(question))] if question.issuers else []
    else:
        is_secure, words = texts.security(question)
        lines += [f"{'' if is_secure else 'NOT SECURE: '}{words}.", f"Scheme: {texts.scheme(question.space)}."]
    lines += [f"Asked by {texts.program(requester)} ({texts.program_place(requester)})", f"for {texts.fetch(question)}"]
    return "\n".join(line for line in lines if line)


def _certificate(question: Question) -> list[str]:
    leaf = question.chain[0]
    return [
        f"Issued to {texts.shown(leaf.subject) or 'nobody'}, for {texts.names(leaf)}",
        f"Issued by {texts.shown(leaf.issuer) or 'nobody'}",
        f"Valid from {texts.date(leaf.not_before)} to {texts.date(leaf.not_after)}",
        "SHA-256 fingerprint:", texts.fingerprint(leaf.sha256)]


def _login(question: Question, dialogue: Dialogue) -> Optional[answers.Answer]:
    text = introduction(question)
    if question.has_proposed_secret and not question.failures:
        chosen = dialogue.choose(text, [("proposed", "Use the stored one"), ("other", "Type another")], "Cancel")
        if chosen != "other":
            return answers.use_proposed() if chosen else None
    if question.kind is Kind.TOKEN:
        token = dialogue.secret(text, "Token")
        return answers.token(token, answers.usual_keep(question)) if token else None
    prompt = "User (or DOMAIN\\user)" if question.space.method == "ntlm" else "User"
    user = dialogue.line(text, prompt, question.proposed_user or "")
    if not user:
        return None
    password = dialogue.secret(text, f"Password of {texts.shown(user)}")
    if not password:
        return None
    return answers.password(user, password, "", answers.usual_keep(question))


def _client_certificate(question: Question, dialogue: Dialogue) -> Optional[answers.Answer]:
    text = introduction(question)
    paths: list[str] = []
    for prompt in ("Certificate: PEM, PKCS#12 or pkcs11: URI", "Private key, if it is in another file (or nothing)"):
        problem = ""
        while True:
            typed = dialogue.line(text + problem, prompt, "")
            if typed is None or not typed and not paths:
                return None
            try:
                paths.append(certificate_files.checked(typed) if typed else "")
                break
            except certificate_files.NotUsable as why:
                problem = f"\n{why}"
    passphrase = dialogue.secret(text, "Passphrase or PIN, if there is one (or nothing)")
    return None if passphrase is None else answers.certificate(paths[0], paths[1], passphrase, answers.usual_keep(question))


def _trust(question: Question, dialogue: Dialogue) -> Optional[answers.Answer]:
    words = {answers.KEEP_NOT: "Trust once", answers.KEEP_SESSION: "Until I log out", answers.KEEP_KEYRING: "Always"}
    chosen = dialogue.choose(introduction(question), [(one, words[one]) for one in answers.kept_for(question)], "Do not trust")
    return answers.trust(question, chosen) if chosen else None


def _consent(question: Question, dialogue: Dialogue) -> Optional[answers.Answer]:
    words = {"once": "Allow once", "session": "Until I log out", "always": "Always"}
    offered = [(one, words[one]) for one in words if one in question.allows] or [("once", words["once"])]
    chosen = dialogue.choose(introduction(question), offered, "No")
    return answers.allow(chosen) if chosen else None


_ASK = {
    Kind.LOGIN: _login, Kind.TOKEN: _login, Kind.CERTIFICATE: _client_certificate, Kind.TRUST: _trust, Kind.CONSENT: _consent}
