"""The window for a client certificate: one of a list, or another file or token."""
import contextlib
import os
from typing import Optional

from gi.repository import Gio, GLib, Gtk

from .. import answers, certificate_choices, certificate_files, places, recent_files, texts, tokens
from ..messages import _
from . import base, buffers, certificate_list, parts


class CertificateWindow(base.QuestionWindow):
    """Asks for the certificate, its key and the passphrase."""

    def build(self) -> None:
        """Shows the accepted issuers, then the certificates to choose from, then the fields for another one and the passphrase."""
        question = self.question
        self.add_notice(texts.failures(question))
        self.add_notice(texts.exception(question))
        taken = texts.issuers(question)
        # On later tries the broker may no longer know the issuers; then the line is left out.
        if taken or texts.failures(question) is None:
            self.add(parts.facts((_("Accepts certificates from"), "\n".join(taken) or _("any issuer"))))
        file, key = question.typed_files
        self._list = certificate_list.CertificateList(question.issuers, self._selected, self._activated)
        self._search: Optional[tokens.TokenSearch] = None
        self._file = self._file_field(_("C_ertificate: PEM, PKCS#12 or pkcs11: URI"), _("Choose the certificate"), file)
        self._key = self._file_field(_("P_rivate key, if it is in another file"), _("Choose the private key"), key)
        self._passphrase = parts.Field(_("_Passphrase or PIN, if there is one"), is_secret=True)
        for widget in (self._list, self._file, self._key, self._passphrase):
            self.add(widget)
        self._problem = parts.label("", "error")
        self._problem.set_visible(False)
        self.add(self._problem)
        self._keep = base.keep_choice(question, _("Use it again for this server"))
        self.add(self._keep)
        self.add_details(without=_("Co_ntinue Without a Certificate"))
        self.add_refusing(_("_Cancel"), answers.cancel())
        self.set_default_widget(self.add_positive(_("_Use Certificate"), self._make))
        self._file.entry.connect("changed", self.changed)
        self._list.add(certificate_choices.on_files(recent_files.read(places.recent_certificates()), os.path.expanduser("~")))
        if file and not self._list.select(file):
            self._list.select_other()
        elif not file:
            self._list.select_best()
        self._selected()
        if file and question.problem in ("passphraseWrong", "pinNotTried"):
            self._passphrase.entry.grab_focus()
        elif self._list.is_other:
            self._file.entry.grab_focus()
        else:
            self._list.focus()
        self.connect("map", lambda _window: self._search_tokens())

    def is_complete(self) -> bool:
        """Whether a certificate is selected or typed. The key is optional, because it is often in the same file."""
        return bool(self._file.entry.get_text().strip()) if self._list.is_other else self._list.chosen is not None

    def forget(self) -> None:
        """Clears the passphrase, which GTK overwrites, and ends the search for tokens."""
        self._passphrase.entry.set_text("")
        if self._search:
            self._search.cancel()

    def _selected(self) -> None:
        for field in (self._file, self._key):
            field.set_visible(self._list.is_other)
        self._problem.set_visible(False)
        self.changed()
        if self.get_mapped():
            self._fit()

    def _activated(self) -> None:
        """Moves from the list to the first field that is needed."""
        (self._file if self._list.is_other else self._passphrase).entry.grab_focus()

    def _search_tokens(self) -> None:
        self._search = self._search or tokens.TokenSearch(tokens.configured_module(), self._found_on_tokens)

    def _found_on_tokens(self, choices: list[certificate_choices.Choice]) -> None:
        was_other, typed = self._list.is_other, self._file.entry.get_text().strip()
        self._list.add(choices)
        if not choices or not was_other:
            return self._selected()
        if not typed:
            self._list.select_best()
            self._list.focus()
        # The token of the previous answer. Otherwise typing can continue.
        elif not self._list.select(typed):
            self._list.select_other()
        self._selected()

    def _make(self) -> Optional[answers.Answer]:
        choice = None if self._list.is_other else self._list.chosen
        try:
            file = certificate_files.checked(choice.certificate if choice else self._file.entry.get_text())
            key = choice.private_key if choice else self._key.entry.get_text()
            key = certificate_files.checked(key) if key.strip() else ""
        except certificate_files.NotUsable as problem:
            self._problem.set_label(str(problem))
            self._problem.set_visible(True)
            self._list.focus() if choice else self._file.entry.grab_focus()
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
