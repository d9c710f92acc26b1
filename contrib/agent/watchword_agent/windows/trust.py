"""A server's certificate that does not verify."""
from gi.repository import Gtk

from .. import answers, texts
from . import base, parts


class TrustWindow(base.QuestionWindow):
    """The usual answer is no: that is where the focus is."""

    def build(self) -> None:
        """What is wrong first; then what can be compared with what somebody has said on the telephone."""
        question = self.question
        leaf = question.chain[0]
        self.add(parts.label(
            "Its certificate does not prove it. If you go on, whatever you send could reach somebody else.",
            align=Gtk.Align.CENTER))
        self.add_notice(texts.failures(question))
        for problem in texts.problems(question):
            self.add_notice(problem, "error" if texts.is_grave(question) else "warning")
        fingerprint = texts.fingerprint(leaf.sha256)
        self.add(parts.facts(
            ("Issued to", texts.shown(leaf.subject) or "nobody"), ("Names", texts.names(leaf)),
            ("Issued by", texts.shown(leaf.issuer) or "nobody"),
            ("Valid", f"{texts.date(leaf.not_before)} to {texts.date(leaf.not_after)}")))
        print_ = parts.label(fingerprint, "fingerprint", align=Gtk.Align.CENTER)
        print_.set_wrap(False)
        parts.name(print_, f"SHA-256 fingerprint: {fingerprint}")
        self.add(parts.label("SHA-256 fingerprint", "caption", "dim-label", align=Gtk.Align.CENTER))
        self.add(print_)
        if len(question.chain) > 1:
            issuers = "\n".join(f"{texts.shown(one.subject)}, by {texts.shown(one.issuer)}" for one in question.chain[1:5])
            self.add(parts.facts(("Chain", issuers)))
        self._keep = base.keep_choice(question, "Trust this certificate here")
        self.add(self._keep)
        self.add_facts()
        refusing = self.add_refusing("_Cancel", answers.refusal(question))
        self.add_positive("_Trust", lambda: answers.trust(question, self._keep.chosen), "destructive-action")
        refusing.grab_focus()
