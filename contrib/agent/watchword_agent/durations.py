"""The times that the settings offer."""
from .messages import ngettext

IDLE_SECONDS = (60, 300, 600, 1800, 3600, 7200, 28800)
LIFETIME_SECONDS = (600, 1800, 3600, 7200, 14400, 28800, 86400, 604800)


def offered(usual: tuple[int, ...], current: int) -> list[int]:
    """Returns the usual times and the current one, in order."""
    return sorted({*usual, current})


def spelt(seconds: int) -> str:
    """Returns a time in its largest whole unit."""
    if seconds % 86400 == 0:
        return ngettext("{number} day", "{number} days", seconds // 86400).format(number=seconds // 86400)
    if seconds % 3600 == 0:
        return ngettext("{number} hour", "{number} hours", seconds // 3600).format(number=seconds // 3600)
    if seconds % 60 == 0:
        return ngettext("{number} minute", "{number} minutes", seconds // 60).format(number=seconds // 60)
    return ngettext("{number} second", "{number} seconds", seconds).format(number=seconds)
