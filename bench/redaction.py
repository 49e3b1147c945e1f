"""Recall and false alarms of redaction on the made-up corpus, kind by kind, beside
presidio-analyzer's pattern recognisers where that package is installed.

    python -m bench.redaction

The recognisers are called one by one, without a language model, and the e-mail
recogniser reads the list of suffixes that its package brings along. Presidio is asked
only whether it finds the value, whatever it calls it; what it overlaps by half counts.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from reviews import redaction
from tests.corpora import private

Finder = Callable[[str], Iterable[tuple[int, int]]]


def main() -> int:
    """Print one line a kind."""
    finder = presidio()
    beside = "presidio" if finder else "presidio-analyzer is not installed"
    sys.stdout.write(f"{'kind':44} {'n':>3} {'ours':>6} {beside}\n")
    samples = private.samples()
    for kind in dict.fromkeys(sample.kind for sample in samples):
        own = [sample for sample in samples if sample.kind == kind]
        ours = sum(is_taken_out(sample) for sample in own) / len(own)
        theirs = f"{share(finder, own):.0%}" if finder else ""
        sys.stdout.write(f"{kind:44} {len(own):3} {ours:6.0%} {theirs}\n")
    texts = private.harmless()
    alarms = sum(bool(redaction.list_kinds(text)) for text in texts)
    theirs = str(sum(any(True for _ in finder(t)) for t in texts)) if finder else ""
    sys.stdout.write(f"{'harmless texts with an alarm':44} {len(texts):3} {alarms:6} ")
    sys.stdout.write(f"{theirs}\n")
    return 0


def is_taken_out(sample: private.Sample) -> bool:
    """Whether nothing of it is left in the redacted text."""
    shown = redaction.redact_text(sample.text, key=b"bench").text
    return not any(part in shown for part in sample.gone)


def share(finder: Finder, samples: list[private.Sample]) -> float:
    """The part of the samples whose values presidio marks."""
    return sum(is_marked(finder, sample) for sample in samples) / len(samples)


def is_marked(finder: Finder, sample: private.Sample) -> bool:
    marked = {at for start, end in finder(sample.text) for at in range(start, end)}
    for part in sample.gone:
        start = sample.text.find(part)
        inside = sum(at in marked for at in range(start, start + len(part)))
        if inside < len(part) / 2:
            return False
    return True


def presidio() -> Finder | None:
    """All pattern recognisers as one function, or None without the package."""
    try:
        module = importlib.import_module("presidio_analyzer.predefined_recognizers")
        base = importlib.import_module("presidio_analyzer").PatternRecognizer
        tldextract: Any = importlib.import_module("tldextract")
    except ImportError:
        return None
    tldextract.tldextract.TLD_EXTRACTOR = tldextract.TLDExtract(suffix_list_urls=())
    tldextract.extract = tldextract.tldextract.TLD_EXTRACTOR
    names = [name for name in dir(module) if name.endswith("Recognizer")]
    recognisers = list(made(getattr(module, name) for name in sorted(names)))
    kinds = [recogniser for recogniser in recognisers if isinstance(recogniser, base)]
    others = [
        recogniser for recogniser in recognisers if "Phone" in type(recogniser).__name__
    ]

    def find(text: str) -> Iterator[tuple[int, int]]:
        for recogniser in {
            id(recogniser): recogniser for recogniser in [*kinds, *others]
        }.values():
            for result in (
                recogniser.analyze(text, recogniser.supported_entities, None) or ()
            ):
                if result.score >= 0.4:  # a weaker one waits for words around it
                    yield result.start, result.end

    return find


def made(classes: Iterable[Any]) -> Iterator[Any]:
    """Those that need no model and no service. Dates and web addresses are no kinds of
    ours, and an IP address is none either."""
    for kind in classes:
        name = kind.__name__
        if any(part in name for part in ("Date", "Url", "Ip", "Spacy", "Stanza")):
            continue
        # Some need a model, a key or a service.
        with contextlib.suppress(Exception):
            yield kind()


if __name__ == "__main__":
    sys.exit(main())
