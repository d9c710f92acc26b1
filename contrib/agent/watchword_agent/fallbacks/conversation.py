"""Turns a question into a series of prompts, for dialogues with one field at a time."""
import dataclasses
import os
from typing import Optional

from gi.repository import GLib

from .. import answers, browser, certificate_files, texts, web_address
from ..escaping import shown
from ..messages import _
from ..question import BrowserLogin, Kind, PromptKind, Question
from ..secret import Secret
from .dialogue import Dialogue, Unavailable


def converse(question: Question, dialogue: Dialogue) -> answers.Answer:
    """Shows a question and returns the answer; a cancelled prompt is a refusal."""
    answer = _ASK[question.kind](question, dialogue)
    if answer is not None:
        return answer
    return answers.stop_asking(question) if _wants_no_more(question, dialogue) else answers.refusal(question)


def _wants_no_more(question: Question, dialogue: Dialogue) -> bool:
    """Asks whether to stop all prompts, if a question of this program was refused before."""
    if not question.is_repeated:
        return False
    text = "\n".join([
        _("Stop all prompts for {program}?").format(program=texts.program(question.requester)), texts.stop_asking_hint(question.requester)])
    return dialogue.choose(text, [("stop", _("Stop asking"))], _("No")) == "stop"


@dataclasses.dataclass(frozen=True)
class Line:
    """One line of an introduction. If space is short, lines are shortened unless `is_whole` is set, because a part of a host would
    mislead; then optional lines are left out."""

    text: str
    is_whole: bool = False
    is_optional: bool = False


#: The length limits for shortened lines, tried in order until the introduction fits. The last leaves out optional lines too.
_LIMITS = (120, 80, 60, 40, 25)


def introduction(question: Question, dialogue: Dialogue) -> str:
    """Returns the texts of the window as lines, shortened until the dialogue has room for them."""
    lines = [line for line in _lines(question) if line.text]
    text = "\n".join(line.text for line in lines)
    for limit in _LIMITS:
        if dialogue.has_room(text):
            break
        lines_left = [line for line in lines if limit != _LIMITS[-1] or not line.is_optional]
        text = "\n".join(line.text if line.is_whole else shown(line.text, limit) for line in lines_left)
    return text


def _lines(question: Question) -> list[Line]:
    requester = question.requester
    asked_by = Line(_("Asked by {program} ({place})").format(program=texts.caller(requester), place=texts.program_place(requester)))
    if question.prompt:
        shown_lines = texts.prompt_text(question.prompt).split("\n")
        # The question is usually in the last lines, and its subject in the first.
        text = [Line(line, is_optional=3 <= index < len(shown_lines) - 3) for index, line in enumerate(shown_lines)]
        return [Line(texts.heading(question), is_whole=True), *text, Line(texts.prompt_origin(question.prompt), is_optional=True), asked_by]
    lines = [
        Line(texts.heading(question), is_whole=True), Line(texts.long_host(texts.login_host(question)) or "", is_whole=True),
        Line(texts.server_says(question) or "", is_optional=True), Line(texts.failures(question) or "", is_optional=True),
        Line(texts.downgrade(question) or "", is_whole=True)]
    if question.kind is Kind.TRUST:
        lines += [Line(one) for one in texts.problems(question)] + _certificate(question)
    elif question.kind is Kind.CONSENT:
        lines += [
            Line(_("Login: {login}").format(login=texts.wanted(question))),
            Line(_("At: {place}").format(place=texts.place(question.space)), is_whole=True),
            Line(_("{reason}.").format(reason=texts.strength(question)), is_whole=True)]
    elif question.kind is Kind.CERTIFICATE:
        issuers = [Line(f"  {one}", is_optional=True) for one in texts.issuers(question)]
        lines += [Line(_("Accepts certificates from:"), is_optional=True), *issuers] if issuers else []
    else:
        is_secure, words = texts.security(question)
        lines += [
            Line((_("{reason}.") if is_secure else _("Not secure: {reason}.")).format(reason=words), is_whole=True),
            Line(_("Scheme: {scheme}.").format(scheme=texts.scheme(question.space))),
            Line(texts.known_users(question) or ""), *(_browser_login(question, question.login) if question.login else [])]
    return lines + [
        Line(texts.session_hint(question) if _offers_session(question) else "", is_whole=True, is_optional=True),
        asked_by, Line(_("for {fetch}").format(fetch=texts.fetch(question)), is_whole=True, is_optional=True)]


def _browser_login(question: Question, login: BrowserLogin) -> list[Line]:
    lines = [
        Line(_("Site: {place}").format(place=texts.place(question.space)), is_whole=True),
        Line(_("Scopes: {scopes}").format(scopes=texts.scopes(login)) if login.scopes else "")]
    if web_address.to_open(login) is None:
        return [*lines, Line(texts.refused_address(login))]
    if login.user_code:
        lines += [Line(texts.device_warning(), is_whole=True), Line(texts.device_instruction())]
    else:
        lines.append(Line(_("Open this address in a browser on this machine:")))
    address, code = (Line(text, is_whole=True) for text in (texts.device_address(login), texts.device_code(login)))
    return [*lines, address, code, Line(texts.time_left(login))]


def _offers_session(question: Question) -> bool:
    """Whether the answer is stored for the session: always, except for trust and consent, where the person chooses."""
    if question.kind is Kind.CONSENT:
        return "session" in question.allows
    if question.kind is Kind.TRUST:
        return answers.KEEP_SESSION in answers.allowed_persistence(question)
    return answers.usual_keep(question) == answers.KEEP_SESSION


def _certificate(question: Question) -> list[Line]:
    leaf = question.chain[0]
    return [
        Line(_("Issued to {subject}, for {names}").format(
            subject=texts.shown(leaf.subject) or _("unknown"), names=texts.names(leaf)), is_optional=True),
        Line(_("Issued by {issuer}").format(issuer=texts.shown(leaf.issuer) or _("unknown")), is_optional=True),
        Line(_("Valid: {time}").format(time=texts.validity(leaf)), is_optional=True),
        Line(_("SHA-256 fingerprint:")), Line(texts.fingerprint(leaf.sha256), is_whole=True)]


def _login(question: Question, dialogue: Dialogue) -> Optional[answers.Answer]:
    text = introduction(question, dialogue)
    if question.login and not _wants_to_type(question.login, text, dialogue):
        return None
    if question.is_proposal_apart:
        chosen = dialogue.choose(text, [("proposed", _("Use the saved one")), ("other", _("Type another"))], _("Cancel"))
        if chosen != "other":
            return answers.use_proposed() if chosen else None
    if question.kind is Kind.TOKEN:
        token = dialogue.secret(text, _("Token"))
        return answers.token(token, answers.usual_keep(question)) if token else None
    prompt = _("User (or DOMAIN\\user)") if question.space.method == "ntlm" else _("User")
    user = dialogue.line(text, prompt, question.proposed_user or "")
    if not user:
        return None
    stored = next((one for one in question.known_users if one.name == user), None)  # guard: agent-known-names-are-exact
    if stored:
        return answers.use_stored(stored)
    password = dialogue.secret(text, _("Password of {user}").format(user=texts.shown(user)), _("Password"))
    if not password:
        return None
    return answers.password(user, password, "", answers.usual_keep(question))


def _wants_to_type(login: BrowserLogin, text: str, dialogue: Dialogue) -> bool:
    """Waits for the login in the browser, until the question is withdrawn; returns whether to ask for a token instead."""
    if not dialogue.shows_addresses:
        raise Unavailable("it cannot show the address of a login")
    address, choices = web_address.to_open(login), [("token", _("Enter a token by hand"))]
    # Without a display, a browser for terminals would use this one.
    if address and (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        choices.insert(0, ("open", _("Open the browser")))
    while (chosen := dialogue.choose(text, choices, _("Not now"))) == "open":
        GLib.idle_add(lambda: browser.open_address(address or "", None, lambda: None))
    return chosen == "token"


def _client_certificate(question: Question, dialogue: Dialogue) -> Optional[answers.Answer]:
    text = introduction(question, dialogue)
    paths: list[str] = []
    prompts = (_("Certificate: PEM, PKCS#12 or pkcs11: URI"), _("Private key, if it is in another file (or nothing)"))
    for prompt, initial in zip(prompts, question.typed_files):
        problem = ""
        while True:
            typed = dialogue.line(text + problem, prompt, initial)
            if typed is None or not typed and not paths:
                return None
            try:
                paths.append(certificate_files.checked(typed) if typed else "")
                break
            except certificate_files.NotUsable as why:
                problem = f"\n{why}"
    passphrase = dialogue.secret(text, _("Passphrase or PIN, if there is one (or nothing)"))
    return None if passphrase is None else answers.certificate(paths[0], paths[1], passphrase, answers.usual_keep(question))


def _trust(question: Question, dialogue: Dialogue) -> Optional[answers.Answer]:
    words = {
        answers.KEEP_NOT: _("Trust once"), answers.KEEP_SESSION: _("Trust for this session"),
        answers.KEEP_KEYRING: _("Trust always")}
    chosen = dialogue.choose(
        introduction(question, dialogue), [(one, words[one]) for one in answers.allowed_persistence(question)], _("Do not trust"))
    return answers.trust(question, chosen) if chosen else None


def _consent(question: Question, dialogue: Dialogue) -> Optional[answers.Answer]:
    words = {"once": _("Allow once"), "session": _("Allow for this session"), "always": _("Allow always")}
    offered = [(one, words[one]) for one in words if one in question.allows] or [("once", words["once"])]
    chosen = dialogue.choose(introduction(question, dialogue), offered, _("No"))
    return answers.allow(chosen) if chosen else None


def _prompt(question: Question, dialogue: Dialogue) -> Optional[answers.Answer]:
    assert question.prompt is not None
    text, kind = introduction(question, dialogue), question.prompt.kind
    if kind is PromptKind.SECRET:
        secret = dialogue.secret(text, _("Your answer"))
        return answers.typed(secret) if secret else None
    if kind is PromptKind.TEXT:
        line = dialogue.line(text, _("Your answer"), "")
        return answers.typed(Secret(bytearray(line.encode()))) if line else None
    if kind is PromptKind.INFORMATION:
        dialogue.choose(text, [("close", _("OK"))], _("Close"))
        return answers.cancel()
    return answers.confirm() if dialogue.choose(text, [("yes", _("Yes"))], _("No")) else None


_ASK = {
    Kind.LOGIN: _login, Kind.TOKEN: _login, Kind.CERTIFICATE: _client_certificate, Kind.TRUST: _trust, Kind.CONSENT: _consent,
    Kind.PROMPT: _prompt}
