"""The formats of files of evidence, apart from the module that draws them: no other
process has to load its parsers."""

from __future__ import annotations

PDF, CSV, JSON = "application/pdf", "text/csv", "application/json"
# No other format of a picture is ever tried.
FORMATS = {
    "image/png": "PNG",
    "image/jpeg": "JPEG",
    "image/webp": "WEBP",
    "image/gif": "GIF",
}
MOST_PAGES = 12  # pages of a PDF, frames of an animation; the first ones
