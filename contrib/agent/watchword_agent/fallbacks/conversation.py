"""A question as a row of small ones, for ways of asking that have one field at a time."""
import dataclasses
from typing import Optional

from .. import answers, certificate_files, texts
from ..escaping import shown
from ..question import Kind, Question
from .dialogue import Dialogue


def converse(question: Question, dialogue: Dialogue) -> answers.Answer:
    """Asks all that is needed. What was cancelled is refused."""
    answer = _ASK[question.kind](question, dialogue)
    if answer is not None:
        return answer
    return answers.stop_asking(question) if _wants_no_more(question, dialogue) else answers.refusal(question)


def _wants_no_more(question: Question, dialogue: Dialogue) -> bool:
    """After a refusal, of a program whose questions were refused before."""
    if not question.is_repeated:
        return False
    text = f"Stop all questions of {texts.program(question.requester)}?\n{texts.STOP_ASKING_HINT}"
    return dialogue.choose(text, [("stop", "Stop asking")], "No") == "stop"


@dataclasses.dataclass(frozen=True)
class Line:
    """One line of an introduction. Where there is little room, some are shortened, and some are left out but never cut: half a
    host says less than none."""

    text: str
    is_whole: bool = False
    is_optional: bool = False


#: What is tried to make an introduction fit: characters of each line that may be shortened. The last leaves out what may be.
_LIMITS = (120, 80, 60, 40, 25)


def introduction(question: Question, dialogue: Dialogue) -> str:
    """What the windows say, in lines, as far as the dialogue has room for them."""
    lines = [line for line in _lines(question) if line.text]
    text = "\n".join(line.text for line in lines)
    for limit in _LIMITS:
        if dialogue.has_room(text):
            break
        kept = [line for line in lines if limit != _LIMITS[-1] or not line.is_optional]
        text = "\n".join(line.text if line.is_whole else shown(line.text, limit) for line in kept)
    return text


def _lines(question: Question) -> list[Line]:
    requester = question.requester
    lines = [
        Line(texts.heading(question), is_whole=True), Line(texts.long_host(question.space) or "", is_whole=True),
        Line(texts.server_says(question) or "", is_optional=True), Line(texts.failures(question) or "", is_optional=True),
        Line(texts.downgrade(question) or "", is_whole=True)]
    if question.kind is Kind.TRUST:
        lines += [Line(one) for one in texts.problems(question)] + _certificate(question)
    elif question.kind is Kind.CONSENT:
        lines += [
            Line(f"Log-in: {texts.wanted(question)}"), Line(f"At: {texts.place(question.space)}", is_whole=True),
            Line(f"{texts.strength(question)}.", is_whole=True)]
    elif question.kind is Kind.CERTIFICATE:
        issuers = [Line(f"  {one}", is_optional=True) for one in texts.issuers(question)]
        lines += [Line("It takes those of:", is_optional=True), *issuers] if issuers else []
    else:
        is_secure, words = texts.security(question)
        lines += [
            Line(f"{'' if is_secure else 'NOT SECURE: '}{words}.", is_whole=True), Line(f"Scheme: {texts.scheme(question.space)}."),
            Line(texts.known_users(question) or "")]
    return lines + [
        Line(f"Asked by {texts.program(requester)} ({texts.program_place(requester)})"),
        Line(f"for {texts.fetch(question)}", is_whole=True, is_optional=True)]


def _certificate(question: Question) -> list[Line]:
    leaf = question.chain[0]
    return [
        Line(f"Issued to {texts.shown(leaf.subject) or 'nobody'}, for {texts.names(leaf)}", is_optional=True),
        Line(f"Issued by {texts.shown(leaf.issuer) or 'nobody'}", is_optional=True),
        Line(f"Valid from {texts.date(leaf.not_before)} to {texts.date(leaf.not_after)}", is_optional=True),
        Line("SHA-256 fingerprint:"), Line(texts.fingerprint(leaf.sha256), is_whole=True)]


def _login(question: Question, dialogue: Dialogue) -> Optional[answers.Answer]:
    text = introduction(question, dialogue)
    if question.is_proposal_apart:
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
    stored = next((one for one in question.known_users if one.name == user), None)
    if stored:
        return answers.use_stored(stored)
    password = dialogue.secret(text, f"Password of {texts.shown(user)}")
    if not password:
        return None
    return answers.password(user, password, "", answers.usual_keep(question))


def _client_certificate(question: Question, dialogue: Dialogue) -> Optional[answers.Answer]:
    text = introduction(question, dialogue)
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
    chosen = dialogue.choose(
        introduction(question, dialogue), [(one, words[one]) for one in answers.kept_for(question)], "Do not trust")
    return answers.trust(question, chosen) if chosen else None


def _consent(question: Question, dialogue: Dialogue) -> Optional[answers.Answer]:
    words = {"once": "Allow once", "session": "Until I log out", "always": "Always"}
    offered = [(one, words[one]) for one in words if one in question.allows] or [("once", words["once"])]
    chosen = dialogue.choose(introduction(question, dialogue), offered, "No")
    return answers.allow(chosen) if chosen else None


_ASK = {
    Kind.LOGIN: _login, Kind.TOKEN: _login, Kind.CERTIFICATE: _client_certificate, Kind.TRUST: _trust, Kind.CONSENT: _consent}
