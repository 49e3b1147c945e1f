"""Characters that look like others: Unicode's table, words and domains."""

from __future__ import annotations

import pytest

from reviews.presenters import unicode
from reviews.presenters.unicode import WordMarker, compute_skeleton, is_imitation


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("paypal", "p\u0430ypal"),  # Cyrillic a
        ("paypal", "\U0001d4c5\U0001d4b6\U0001d4ce\U0001d4c5\U0001d4b6\u2113"),
        ("scope", "\u0455\u0441\u043e\u0440\u0435"),
        ("modern", "rnodem"),
        ("s\u0456te\u00ad", "site"),
        ("k\u00f6ln", "k\u04e7ln"),  # Cyrillic o with diaeresis
        ("k\u00f6ln", "ko\u0308ln"),
        ("stra\u00dfe", "stra\u03b2e"),  # Greek beta
        ("\u5de5", "\u30a8"),  # a character of Chinese and one of Katakana
        ("\u05e1", "o"),  # Hebrew samekh
    ],
)
def test_texts_that_look_equal_have_one_skeleton(one: str, other: str) -> None:
    assert compute_skeleton(one) == compute_skeleton(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("kohl", "k\u00f6hl"), ("cafe", "caf\u00e9"), ("oslo", "\u00f8slo")],
)
def test_an_accent_is_seen(one: str, other: str) -> None:
    assert compute_skeleton(one) != compute_skeleton(other)


@pytest.mark.parametrize(
    ("domain", "ours"),
    [
        ("\u13e2\u13aa\u13d9\u13ac.example", "pave.example"),  # Cherokee
        ("\ua4da\ua4f3\ua4f3\ua4d7.example", "cook.example"),  # Lisu
        ("n\u1d0frthg\u0251te.example", "northgate.example"),  # phonetic letters
        ("\u0440\u0430\u0443\u0440\u0430\u04cf.com", "paypal.com"),
        ("k\u04e7\u04e7ln.de", "k\u00f6\u00f6ln.de"),
        ("xn--kln-3xd.de", "k\u00f6ln.de"),
        ("b\u00fccherstra\u03b2e.de", "b\u00fccherstra\u00dfe.de"),
        ("encyclop\u04d5dia.org", "encyclop\u00e6dia.org"),
        ("\u5de5\u4e1a.cn", "\u30a8\u4e1a.cn"),
    ],
)
def test_a_domain_in_any_script_may_imitate_ours(domain: str, ours: str) -> None:
    assert is_imitation(domain, [ours])


@pytest.mark.parametrize(
    "domain",
    [
        *("caf\u00e9.fr", "k\u00f6ln.de", "\u00f8l.dk", "b\u00fccher.de"),
        *(
            "\u043f\u043e\u0447\u0442\u0430.example",
            "\u03b5\u03bb\u03bb\u03ac\u03b4\u03b1.example",
        ),
        *(
            "\u6771\u4eac.example",
            "\ud55c\uad6d.example",
            "\u05e9\u05dc\u05d5\u05dd.example",
        ),
    ],
)
def test_a_domain_of_another_script_or_with_accents_is_no_imitation(
    domain: str,
) -> None:
    assert not is_imitation(
        domain, ["cafe.fr", "koln.de", "ol.dk", "northgate.example"]
    )


@pytest.mark.parametrize(
    "word",
    [
        *("\u0441\u043e\u0440\u0435", "\u03c4\u03b1\u03c5"),
        *(
            "\ua4d0\ua4f0\ua4e2\ua4f2\ua4e2\ua4e1\ua4f2",
            "\u13ab\u13aa\u13ac",
        ),  # Lisu, Cherokee
    ],
)
def test_a_word_that_only_looks_latin_is_noted(word: str) -> None:
    assert WordMarker(word).note(word) == unicode.LOOKS_LATIN


@pytest.mark.parametrize(
    "word",
    [
        *(
            "\u0412\u0430\u0448\u0435\u0433\u043e",
            "\u041a\u04af\u043d",
            "\u0410\u0432\u0433\u0443\u0441\u0442",
        ),
        *(
            "\u0437\u0430\u043a\u0430\u0437",
            "\u03b3\u03b9\u03b1",
            "\u03c3\u03c4\u03bf\u03bd",
            "\u054d\u0561",
        ),
        *(
            "M\u00fcller",
            "\u00deorl\u00e1kur",
            "\u0130stanbul",
            "Stra\u00dfe",
            "\u0141\u00f3d\u017a",
        ),
    ],
)
def test_a_word_of_its_own_script_is_not(word: str) -> None:
    assert WordMarker(word).note(word) == ""
