"""What can go wrong on a machine, said in one line that ends with what to do."""

from __future__ import annotations


class Fault(Exception):
    """The private installation cannot go on. The text is for the person who typed
    the command; nobody needs a traceback to act on it."""
