"""A client certificate: a file, or one on a token."""
import contextlib
import os
from typing import Optional

from gi.repository import Gio, GLib, Gtk

from .. import answers, certificate_files, texts
from . import base, buffers, parts


class CertificateWindow(base.QuestionWindow):
    """Asks for the certificate, its key and the passphrase."""

    def build(self) -> None:
        """Whose certificates the server takes; then where ours is."""
        question = self.question
        self.add_notice(texts.failures(question))
        taken = texts.issuers(question)
        # At a further try the broker may not know them any more: then nothing is said.
        if taken or texts.failures(question) is None:
            self.add(parts.facts(("It takes those of", "\n".join(taken) or "anybody: the server names no issuer")))
        self._file = self._file_field("C_ertificate: PEM, PKCS#12 or pkcs11: URI", "Choose the certificate")
        self._key = self._file_field("P_rivate key, if it is in another file", "Choose the private key")
        self._passphrase = parts.Field("_Passphrase or PIN, if there is one", is_secret=True)
        for field in (self._file, self._key, self._passphrase):
            self.add(field)
        self._problem = parts.label("", "error")
        self._problem.set_visible(False)
        self.add(self._problem)
        self._keep = base.keep_choice(question, "Show it again to this server")
        self.add(self._keep)
        self.add_facts()
        self.add_refusing("_Cancel", answers.cancel())
        self.add_refusing("_Go On Without", answers.go_on_without())
        self.set_default_widget(self.add_positive("_Show It", self._make))
        self._file.entry.connect("changed", self.changed)
        self._file.entry.grab_focus()

    def is_complete(self) -> bool:
        """A key is often in the same file."""
        return bool(self._file.entry.get_text().strip())

    def forget(self) -> None:
        """Of what was typed nothing is left in the field."""
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

    def _file_field(self, title: str, choosing: str) -> parts.Field:
        field = parts.Field(title)
        button = Gtk.Button(icon_name="document-open-symbolic", tooltip_text=choosing)
        parts.name(button, choosing)
        button.connect("clicked", lambda _: self._choose(field.entry, choosing))
        field.add_button(button)
        return field

    def _choose(self, entry: Gtk.Entry, title: str) -> None:
        chooser = Gtk.FileChooserNative(title=title, transient_for=self, modal=True, action=Gtk.FileChooserAction.OPEN)
        chooser.set_accept_label("_Choose")
        # Not at what was used last by whatever program.
        with contextlib.suppress(GLib.Error):
            chooser.set_current_folder(Gio.File.new_for_path(certificate_files.folder_of(entry.get_text())))
        # Held until it is closed: nothing else does.
        self._chooser: Optional[Gtk.FileChooserNative] = chooser

        def chosen(_: Gtk.FileChooserNative, response: int) -> None:
            file = chooser.get_file()
            if response == Gtk.ResponseType.ACCEPT and file and file.get_path():
                entry.set_text(os.fspath(file.get_path()))
            self._chooser = None
            entry.grab_focus()

        chooser.connect("response", chosen)
        chooser.show()
