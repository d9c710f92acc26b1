"""The window for a client certificate, in a file or on a token."""
import contextlib
import os
from typing import Optional

from gi.repository import Gio, GLib, Gtk

from .. import answers, certificate_files, texts
from ..messages import _
from . import base, buffers, parts


class CertificateWindow(base.QuestionWindow):
    """Asks for the certificate, its key and the passphrase."""

    def build(self) -> None:
        """Shows the accepted issuers, then the fields for certificate, key and passphrase."""
        question = self.question
        self.add_notice(texts.failures(question))
        taken = texts.issuers(question)
        # On later tries the broker may no longer know the issuers; then the line is left out.
        if taken or texts.failures(question) is None:
            self.add(parts.facts((_("Accepts certificates from"), "\n".join(taken) or _("any issuer"))))
        file, key = question.typed_files
        self._file = self._file_field(_("C_ertificate: PEM, PKCS#12 or pkcs11: URI"), _("Choose the certificate"), file)
        self._key = self._file_field(_("P_rivate key, if it is in another file"), _("Choose the private key"), key)
        self._passphrase = parts.Field(_("_Passphrase or PIN, if there is one"), is_secret=True)
        for field in (self._file, self._key, self._passphrase):
            self.add(field)
        self._problem = parts.label("", "error")
        self._problem.set_visible(False)
        self.add(self._problem)
        self._keep = base.keep_choice(question, _("Use it again for this server"))
        self.add(self._keep)
        self.add_details(without=_("Co_ntinue Without a Certificate"))
        self.add_refusing(_("_Cancel"), answers.cancel())
        self.set_default_widget(self.add_positive(_("_Use Certificate"), self._make))
        self._file.entry.connect("changed", self.changed)
        is_passphrase = bool(file) and question.problem in ("passphraseWrong", "pinNotTried")
        (self._passphrase if is_passphrase else self._file).entry.grab_focus()

    def is_complete(self) -> bool:
        """Whether a certificate is typed. The key is optional, because it is often in the same file."""
        return bool(self._file.entry.get_text().strip())

    def forget(self) -> None:
        """Clears the passphrase, which GTK overwrites."""
        self._passphrase.entry.set_text("")

    def _make(self) -> Optional[answers.Answer]:
        try:
            file = certificate_files.checked(self._file.entry.get_text())
            key = certificate_files.checked(self._key.entry.get_text()) if self._key.entry.get_text().strip() else ""
        except certificate_files.NotUsable as problem:
            self._problem.set_label(str(problem))
            self._problem.set_visible(True)
            self._file.entry.grab_focus()
            return None
        return answers.certificate(file, key, buffers.take(self._passphrase.entry), self._keep.chosen)

    def _file_field(self, title: str, choosing: str, path: str) -> parts.Field:
        field = parts.Field(title, path)
        button = Gtk.Button(icon_name="document-open-symbolic", tooltip_text=choosing)
        parts.name(button, choosing)
        button.connect("clicked", lambda *_args: self._choose(field.entry, choosing))
        field.add_button(button)
        return field

    def _choose(self, entry: Gtk.Entry, title: str) -> None:
        chooser = Gtk.FileChooserNative(title=title, transient_for=self, modal=True, action=Gtk.FileChooserAction.OPEN)
        chooser.set_accept_label(_("_Choose"))
        # GTK's default is the folder that some program used last.
        with contextlib.suppress(GLib.Error):
            chooser.set_current_folder(Gio.File.new_for_path(certificate_files.folder_of(entry.get_text())))
        # GTK does not hold a reference to a native file chooser.
        self._chooser: Optional[Gtk.FileChooserNative] = chooser

        def chosen(_chooser: Gtk.FileChooserNative, response: int) -> None:
            file = chooser.get_file()
            if response == Gtk.ResponseType.ACCEPT and file and file.get_path():
                entry.set_text(os.fspath(file.get_path()))
            self._chooser = None
            entry.grab_focus()

        chooser.connect("response", chosen)
        chooser.show()
