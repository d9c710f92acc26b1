"""May a program use what is kept?"""
from gi.repository import Gtk

from .. import answers, texts
from . import base, parts


class ConsentWindow(base.QuestionWindow):
    """The usual answer is no: that is where the focus is."""

    def build(self) -> None:
        """The program and how certain that is; then what it would use."""
        question = self.question
        self.add(parts.label(texts.program_place(question.requester), "dim-label", align=Gtk.Align.CENTER))
        is_certain = question.strength == "strong"
        self.add_notice(
            texts.strength(question), "dim-label" if is_certain else "warning",
            "emblem-ok-symbolic" if is_certain else "dialog-warning-symbolic")
        rows = [("Log-in", texts.wanted(question)), ("At", "\n".join(filter(None, [texts.place(question.space), texts.long_host(question.space)])))]
        if question.space.realm:
            rows.append(("It says", texts.quoted(question.space.realm)))
        self.add(parts.facts(*rows, ("For", texts.fetch(question)), ("Scheme", texts.scheme(question.space))))
        words = {"once": "_Once", "session": "Until _I Log Out", "always": "_Always"}
        offered = [one for one in words if one in question.allows] or ["once"]
        self._how_long = parts.Choice("Allow it", [(one, words[one]) for one in offered], offered[0])
        self.add(self._how_long)
        refusing = self.add_refusing("_No", answers.refusal(question))
        self.add_positive("A_llow" if len(offered) > 1 else "A_llow Once", lambda: answers.allow(self._how_long.chosen))
        refusing.grab_focus()
