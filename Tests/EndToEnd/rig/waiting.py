"""Waiting for a descriptor. Not with select(2): it knows no descriptor above 1023, and a long run has them."""
import select


def is_ready(file, seconds):
    """Whether `file`, an object or a number, has something to read within `seconds`."""
    poll = select.poll()
    poll.register(file, select.POLLIN | select.POLLHUP | select.POLLERR)
    return bool(poll.poll(seconds * 1000))
