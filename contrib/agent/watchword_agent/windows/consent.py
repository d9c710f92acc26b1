"""The window that asks whether a program may use a saved login."""
from gi.repository import Gtk

from .. import answers, texts
from ..messages import _
from . import base, parts


class ConsentWindow(base.QuestionWindow):
    """Asks for consent. The focus is on *No*, the default answer."""

    def build(self) -> None:
        """Shows the program and how reliably it is identified, then the login it would use."""
        question = self.question
        self.add(parts.label(texts.program_place(question.requester), "dim-label", align=Gtk.Align.CENTER))
        is_certain = question.strength == "strong"
        self.add_notice(
            texts.strength(question), "dim-label" if is_certain else "warning",
            "emblem-ok-symbolic" if is_certain else "dialog-warning-symbolic")
        rows = [(_("Login"), texts.wanted(question)), (_("At"), "\n".join(filter(None, [texts.place(question.space), texts.long_host(question.space.host)])))]
        if question.space.realm:
            rows.append((_("Server says"), texts.quoted(question.space.realm)))
        self.add(parts.facts(*rows))
        words = {"once": _("_Once"), "session": _("For Th_is Session"), "always": _("_Always")}
        offered = [one for one in words if one in question.allows] or ["once"]
        self._how_long = parts.Choice(_("Allow this script") if question.requester.script else _("Allow it"), [(one, words[one]) for one in offered], offered[0],
            texts.session_hint(question) if "session" in offered else "")
        self.add(self._how_long)
        self.add_details((_("Scheme"), texts.scheme(question.space)))
        refusing = self.add_refusing(_("_No"), answers.refusal(question))
        self.add_positive(_("A_llow") if len(offered) > 1 else _("A_llow Once"), lambda: answers.allow(self._how_long.chosen))
        refusing.grab_focus()
