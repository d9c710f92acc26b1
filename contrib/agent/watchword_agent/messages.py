"""Translations with gettext. `po/update` and contrib/install compile the catalogues."""
import gettext
import pathlib

_AGENT = pathlib.Path(__file__).resolve().parent.parent
# `po/update` writes this folder in the source tree. The installed agent is in PREFIX/lib/watchword/agent.
_BUILT = _AGENT / ".build-locale"
_translations: gettext.NullTranslations = gettext.translation(
    "watchword-agent", _BUILT if _BUILT.is_dir() else _AGENT / "../../../share/locale", fallback=True)


def use(translations: gettext.NullTranslations) -> None:
    """Replaces the translations, for tests."""
    global _translations
    _translations = translations


def N_(message: str) -> str:  # noqa: N802
    """Marks a message that is translated where it is used."""
    return message


def _(message: str) -> str:
    """Returns the translation of a message."""
    return _translations.gettext(message)


def ngettext(one: str, several: str, count: int) -> str:
    """Returns the translation of a message with a count."""
    return _translations.ngettext(one, several, count)


def is_right_to_left() -> bool:
    """Whether the texts are written from right to left. The message is GTK's own for this purpose."""
    # Translators: "default:RTL" for a language that is written from right to left, otherwise "default:LTR".
    return _("default:LTR") == "default:RTL"
