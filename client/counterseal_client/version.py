"""The version of every distribution of the product: each build reads it here."""

from __future__ import annotations

__version__ = "0.1.0"
