"""`all` and `any` for tests: over objects that are always true, and `all` over nothing, every program would pass."""

import builtins
import re


def _compared(values):
    for value in values:
        kind = type(value)
        if not isinstance(value, (type(None), re.Match)) and not hasattr(kind, "__bool__") and not hasattr(kind, "__len__"):
            raise AssertionError(f"a {kind.__name__} is always true: compare something of it")
        yield value


def all(values):
    values = list(_compared(values))
    if not values:
        raise AssertionError("there is nothing to check: the condition would hold for a program that does nothing")
    return builtins.all(values)


def any(values):
    return builtins.any(_compared(values))


def apply(module):
    """Makes the tests of a module use these functions."""
    for function in (all, any):
        setattr(module, function.__name__, function)
