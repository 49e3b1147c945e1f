"""Datasets leave without names: over the shop's own policy, messages and people."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from assurance.datasets import redaction
from assurance.datasets.redaction import LineRedactor, LineSubject
from policies.documents import Document, ToolDefinition, parse_document
from policies.models import Person, Tool
from reviews.models import Proposal, Revision
from reviews.presenters import unicode
from reviews.presenters.unicode import load_lookalikes
from reviews.redaction.named_values import PeopleFinder

DEMO = Path(__file__).parents[3] / "demo"
DATA = DEMO / "store" / "data"
CUSTOMERS = json.loads((DATA / "customers.json").read_text())
MESSAGES = json.loads((DATA / "messages.json").read_text())
LABELS = json.loads((DATA / "labels.json").read_text())
CAST = ["Rita Okafor", "Sue Lindqvist", "Tom Bergmann", "Sam Adeyemi", "Alma Brandt"]
FOREIGN = {latin: chr(code) for code, latin in load_lookalikes().items()}
ACCENTS = str.maketrans({"a": "a\u0301", "o": "o\u0308", "e": "e\u0300"})


def list_spellings(name: str) -> Iterator[str]:
    """Twenty and more ways in which a text may have a name."""
    first, last = name.split()[0], name.split()[-1]
    half = len(last) // 2
    yield from (
        name,
        first,
        last,
        name.upper(),
        name.lower(),
        f"{last}'s",
        f"{last}\u2019s",
    )
    yield from (f"{first}_{last}".lower(), first + last, (first + last).upper())
    yield from (f"{last}, {first}", f"{first[0]}. {last}", f"{last} {first[0]}.")
    yield from (f"{first}\n{last}", f"{last[:half]}-\n{last[half:]}", f"{first}-{last}")
    yield from (
        f"{last[:half]}\u200b{last[half:]}",
        f"{last[:half]}\u00ad{last[half:]}",
    )
    yield f"{first}.{last}@mail.example".lower()
    yield f"{first[0]}{last}@mail.example".lower()
    yield f"https://crm.example/people/{first}-{last}/1".lower()
    yield f"ticket-{last}-17".lower()
    yield "".join(
        chr(ord(c) + 0xFEE0) if c.isascii() and c.isalpha() else c for c in name
    )
    yield name.translate(ACCENTS)
    yield unicodedata.normalize("NFC", name.translate(ACCENTS))
    yield "".join(FOREIGN.get(char, char) for char in last)
    yield " ".join(last.upper())
    yield f"Dear{last}"


def letters(text: str) -> str:
    """The letters of a text as a reader takes them."""
    plain = unicodedata.normalize("NFKD", text)
    plain = "".join(c for c in plain if unicodedata.category(c)[0] != "M")
    return "".join(
        c for c in plain.translate(load_lookalikes()).casefold() if c.isalpha()
    )


@pytest.fixture(scope="module")
def shop() -> Document:
    text = (DEMO / "policy.yaml").read_text()
    return parse_document(text, variables={"STORE_URL": "http://store.example"})


def build_redactor(
    definition: ToolDefinition, args: dict[str, Any], facts: dict[str, Any]
) -> LineRedactor:
    """The redactor of a line, as the operation builds it for a whole dataset."""
    proposal = Proposal(agent="riley", thread="case-1", tool_name=definition.name)
    data = definition.model_dump(mode="json", by_alias=True)
    revision = Revision(
        proposal=proposal,
        tool=Tool(name=definition.name, definition=data, digest=definition.name),
        reading={
            "before": {"customer": "C-1017"},
            "keys": {"customer": "C-1017", "order": "78291"},
            "facts": facts,
            "labels": LABELS,
        },
    )
    revision.canonical = json.dumps({"args": args}).encode()
    customers = redaction.list_customers(proposal, revision, definition)
    people = [
        Person(
            username=f"{name.split()[0]}".lower(),
            first_name=name.split()[0],
            last_name=name.split()[1],
            public_id=f"u-{number}",
        )
        for number, name in enumerate(CAST)
    ]
    named = [
        *redaction.list_people_named(proposal, revision, definition),
        *(one["name"] for one in CUSTOMERS),
    ]
    others = redaction.build_hidden_names(
        people, customers, named, redaction.list_schema_words(definition, revision)
    )
    subject = LineSubject(proposal, revision, definition, customers)
    return LineRedactor(b"k" * 32, subject, others)


ARGS = {"order_id": "78291", "amount": "899.00", "currency": "USD", "reason": "damaged"}
FACTS = {"customer_name": "Casey Lindholm", "payment_method": "card ending 4242"}


@pytest.fixture
def redactor(shop: Document, settings: Any) -> LineRedactor:
    return build_redactor(shop.tools["process_refund"], ARGS, FACTS)


@pytest.mark.parametrize("name", [*CAST, *(one["name"] for one in CUSTOMERS)])
def test_no_spelling_of_a_name_stays(name: str, redactor: LineRedactor) -> None:
    parts = [letters(part) for part in name.split() if len(part) > 3]
    for spelling in list_spellings(name):
        for text in (spelling, f"We asked {spelling} about it.", f"({spelling})"):
            found = redactor.redact_text(text)
            left = [part for part in parts if part in letters(found)]
            assert not left, (spelling, found)
            assert "[person" in found or "redacted" in found, (spelling, found)


ENCODINGS: dict[str, Callable[[str], str]] = {
    "percent": lambda text: "".join(f"%{byte:02x}" for byte in text.encode()),
    "percent twice": lambda text: "".join(f"%25{b:02X}" for b in text.encode()),
    "decimal reference": lambda text: "".join(f"&#{ord(c)};" for c in text),
    "open reference": lambda text: "".join(f"&#x{ord(c):x}" for c in text) + ";",
    "quoted-printable": lambda text: "".join(f"={b:02X}" for b in text.encode()),
    "soft break": lambda text: "=\r\n".join(text),
    "json": lambda text: "".join(f"\\u{ord(c):04x}" for c in text),
    "one letter": lambda text: f"%{ord(text[0]):02X}{text[1:]}",
    "named reference": lambda text: text.replace(" ", "&nbsp;"),
}


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_no_encoding_of_a_name_stays(encoding: str, redactor: LineRedactor) -> None:
    for name in ("Casey Lindholm", CAST[0], "C-1017"):
        written = ENCODINGS[encoding](name)
        texts = [
            redactor.redact_text(f"See https://store.example/?who={written}&a=%20"),
            json.dumps(redactor.redact_arguments({"note": f"for {written}."})),
            json.dumps(redactor.redact_arguments({written: "a", "b": [written]})),
        ]
        for text in texts:
            seen = unicode.decode_names(text)
            assert not [part for part in name.split() if part in seen], (name, text)


def test_a_name_in_punycode_does_not_stay(redactor: LineRedactor) -> None:
    host = "m\u00fcller-casey-lindholm".encode("idna").decode()
    assert "xn--" in host
    found = redactor.redact_text(f"https://{host}.example/")
    assert "lindholm" not in letters(unicode.decode_names(found))


def test_an_encoded_text_without_names_stays_as_it_is(redactor: LineRedactor) -> None:
    text = "a%20b &amp; c=20 \\u0041 https://xn--bcher-kva.example/?q=%2F"
    assert redactor.redact_text(text) == text
    assert redactor.redact_arguments({"note": text}) == {"note": text}


def test_the_shops_messages_leave_without_their_writers(redactor: LineRedactor) -> None:
    known = {one["name"] for one in CUSTOMERS}
    for message in MESSAGES:
        text = f"{message['name']} wrote: {message['subject']}\n{message['body']}"
        found = letters(redactor.redact_text(text))
        for word in message["name"].split() if message["name"] in known else ():
            assert letters(word) not in found


def test_no_word_of_the_schema_is_taken_for_a_name(
    shop: Document, redactor: LineRedactor
) -> None:
    words = [*LABELS, *LABELS.values()]
    for tool in shop.tools.values():
        words += [tool.title, *tool.labels.values(), *tool.facts, *tool.keys]
        words += tool.arguments.get("properties", {})
    finder = redactor.others.names
    for word in words:
        assert finder.hide(word, "x") == word


def test_arguments_keep_their_names_values_and_pseudonyms(
    redactor: LineRedactor,
) -> None:
    found = redactor.redact_arguments(ARGS)
    assert list(found) == list(ARGS)
    assert (found["amount"], found["reason"]) == ("899.00", "damaged")
    assert found["order_id"] in redactor.pseudonyms.values()
    said = redactor.redact_text("The customer C-1017 has the order 78291.")
    for one in ("c-1017", "78291"):
        assert redactor.pseudonyms[one] in said
    assert said.startswith("The customer ")


@pytest.mark.parametrize(
    "text",
    [
        "The brandy is late; suede and samples are not.",
        "An alabaster tomato, a ritard and a brand team.",
        "customer-abcdefghijklmnop and [person · redacted · #a51a]-x",
        "Nothing to see.",
    ],
)
def test_other_words_stay(text: str) -> None:
    finder = PeopleFinder([*CAST, "Bo Li"])
    assert list(finder.find(text)) == []


def test_a_short_name_is_found_whole_and_joined() -> None:
    finder = PeopleFinder(["Bo Li", "Jörg Østergård"])
    for text in (
        "Bo Li",
        "BoLi",
        "bo_li",
        "Li, Bo",
        "Joerg",
        "jorg.ostergard@x.example",
    ):
        assert finder.hide(text, "").strip(" .,@_") in {"", "x.example"}, text
    assert finder.hide("a bold line", "") == "a bold line"
