"""The window for a server whose certificate does not verify."""
from gi.repository import Gtk

from .. import answers, texts
from ..messages import _
from . import base, parts


class TrustWindow(base.QuestionWindow):
    """Asks whether to trust the server. The focus is on *Cancel*, the default answer."""

    def build(self) -> None:
        """Shows the problems first, then the certificate and its fingerprint, for comparison with a known one."""
        question = self.question
        leaf = question.chain[0]
        self.add(parts.label(texts.trust_summary(question), align=Gtk.Align.CENTER))
        self.add_notice(texts.failures(question))
        for problem in texts.problems(question):
            kind = "error" if texts.is_grave(question) else "warning" if question.trust_problems else "dim-label"
            self.add_notice(problem, kind, "dialog-warning-symbolic" if question.trust_problems else "emblem-ok-symbolic")
        fingerprint = texts.fingerprint(leaf.sha256)
        print_ = parts.label(fingerprint, "fingerprint", align=Gtk.Align.CENTER)
        print_.set_wrap(False)
        parts.name(print_, _("SHA-256 fingerprint: {fingerprint}").format(fingerprint=fingerprint))
        self.add(parts.label(_("SHA-256 fingerprint"), "caption", "dim-label", align=Gtk.Align.CENTER))
        self.add(print_)
        self._keep = base.keep_choice(question, _("Trust this certificate here"))
        self.add(self._keep)
        rows = [
            (_("Issued to"), texts.shown(leaf.subject) or _("unknown")), (_("Names"), texts.names(leaf)),
            (_("Issued by"), texts.shown(leaf.issuer) or _("unknown")),
            (_("Valid"), texts.validity(leaf))]
        if len(question.chain) > 1:
            rows.append((_("Chain"), "\n".join(
                _("{subject}, by {issuer}").format(subject=texts.shown(one.subject), issuer=texts.shown(one.issuer)) for one in question.chain[1:5])))
        self.add_details(*rows)
        refusing = self.add_refusing(_("_Cancel"), answers.refusal(question))
        self.add_positive(_("_Trust"), lambda: answers.trust(question, self._keep.chosen), "destructive-action")
        refusing.grab_focus()
