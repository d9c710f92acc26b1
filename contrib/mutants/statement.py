"""The marker for a whole statement, used in place of a text."""

STATEMENT = None
