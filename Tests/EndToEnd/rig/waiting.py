"""Waits for a descriptor. Not with select(2), which does not support descriptors above 1023, and a long run has such
descriptors."""
import select


def is_ready(file, seconds):
    """Whether `file`, an object or a number, is readable within `seconds`."""
    poll = select.poll()
    poll.register(file, select.POLLIN | select.POLLHUP | select.POLLERR)
    return bool(poll.poll(seconds * 1000))
