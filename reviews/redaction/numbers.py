"""Recognises numbers with a checksum: cards, IBANs and national ids."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from itertools import accumulate

from stdnum import iban, luhn, numdb
from stdnum.be import ssn as rijksregister
from stdnum.br import cpf
from stdnum.ch import ssn as ahv
from stdnum.de import idnr
from stdnum.es import nif
from stdnum.fr import nir
from stdnum.it import codicefiscale
from stdnum.se import personnummer

from .spans import CARD, IBAN, NATIONAL_ID, SEPARATOR, Span

# ---- cards: Luhn, and an issuer's prefix and length (ISO/IEC 7812)
_RUN = re.compile(r"\d(?<!\w\d)(?:[ \t\-._]{0,3}\d){12,}+")
# Separators that may also part the items of a list are accepted only between the groups
# printed on cards (4-4-4-4 or 4-6-5), with no further group before or after.
_PART = r"[ \t]{0,2}(?:[/,|:;*+=~'\\#&>]|\r?\n|[ \t\-._])[ \t]{0,2}"
_GROUPED = re.compile(
    rf"\d(?<!\w\d)(?<!\d[/,|:;*.\-]\d)\d{{3}}{_PART}(?:\d{{4}}{_PART}\d{{4}}{_PART}\d{{4}}"
    rf"|\d{{6}}{_PART}\d{{5}})(?![\w]|[/,|:;*\-]\d)"
)
# After such a label the number counts even if its check digit is wrong.
_CARD_LABEL = re.compile(
    r"(?<![A-Za-z0-9])(?=[cdknpt]|(?-i:[^\x00-\x7f]))"
    r"(?:(?:credit[ -]?|debit[ -]?)?card(?: number| no\.?)?"
    r"|carta|karta|karte|tarjeta|cart[ãa]o|carte|kaart|карта"
    r"|(?:kredit)?karten?nummer|num[ée]ro de (?:la )?carte|n[úu]mero (?:de|da|do) "
    r"(?:la )?(?:tarjeta|cart[ãa]o)|kaartnummer|numero (?:di|della) carta|numer karty"
    r"|kort(?:nummer|et)?|номер карты|(?:信用|银行)?卡号?|(?:クレジット)?カード番号"
    r"|카드[ ]?번호|pan)"
    rf"{SEPARATOR}(\d(?:[ \t\-._]{{0,2}}\d){{12,18}})(?![\w])",
    re.IGNORECASE,
)
_DECIMAL = re.compile(r"\d+\.\d+")
_GROUP = re.compile(r"\d+")
_ISSUERS = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})"
    r"|(?:5[1-5]\d\d|222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720|220[0-4])\d{12}"
    r"|3[47]\d{13}|(?:36|38|39|30[0-5]\d?)\d{11,16}|35(?:2[89]|[3-8]\d)\d{12,15}"
    r"|(?:6011|65\d\d|64[4-9]\d|62\d\d)\d{12,15}|(?:50|5[6-9]|6\d)\d{14,17}"
)
_SHORTEST_CARD, _LONGEST_CARD = 13, 19  # digits
_DOUBLED = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)  # of a digit, the digits added up


def find_cards(view: str) -> Iterator[Span]:
    """Card numbers, written in groups or without spaces."""
    for run in _RUN.finditer(view):
        digits = run.group()
        if view[run.end() : run.end() + 1].isalpha():
            digits = digits.rstrip("0123456789")  # the last digits belong to a word
        if not _DECIMAL.fullmatch(digits):
            yield from _find_cards_in_run(digits, run.start())
    for match in _GROUPED.finditer(view):
        number = re.sub(r"\D", "", match.group())
        if _ISSUERS.fullmatch(number) and luhn.is_valid(number):
            yield Span(*match.span(), CARD, number)
    for match in _CARD_LABEL.finditer(view):
        yield Span(*match.span(1), CARD, re.sub(r"\D", "", match[1]))


def _find_cards_in_run(run: str, offset: int) -> Iterator[Span]:
    groups = [match.span() for match in _GROUP.finditer(run)]
    digits = "".join(run[start:end] for start, end in groups)
    counted = [0, *accumulate(end - start for start, end in groups)]
    ends = {count: groups[n][1] for n, count in enumerate(counted[1:])}
    sums = [_sum_digits(digits, parity) for parity in (0, 1)]
    taken = 0
    for (start, _), first in zip(groups, counted, strict=False):
        if first < taken or digits[first] not in "23456":
            continue
        for stop in range(first + _LONGEST_CARD, first + _SHORTEST_CARD - 1, -1):
            total = sums[stop % 2]
            if stop not in ends or (total[stop] - total[first]) % 10:
                continue
            if _ISSUERS.fullmatch(digits, first, stop):
                number = digits[first:stop]
                yield Span(offset + start, offset + ends[stop], CARD, number)
                taken = stop
                break


def _sum_digits(digits: str, parity: int) -> list[int]:
    """Luhn's sums of the digits before each place, if the digits at places of this
    parity are doubled: a run may have a possible card at each of its digits."""
    values = (
        _DOUBLED[int(digit)] if place % 2 == parity else int(digit)
        for place, digit in enumerate(digits)
    )
    return [0, *accumulate(values)]


# ---- IBAN (ISO 13616)
_IBAN_COUNTRIES = numdb.get("iban")
_IBAN_BEGIN = re.compile(
    r"(?<![A-Za-z0-9])([A-Za-z]{2})[ ]?\d[ ]?\d(?=[ \-.]{0,2}[A-Za-z0-9])"
)
_CHARACTER = re.compile(r"[ \-.]{0,2}([A-Za-z0-9])")


def find_ibans(view: str) -> Iterator[Span]:
    """International bank account numbers, with or without spaces."""
    for begin in _IBAN_BEGIN.finditer(view):
        length = _find_iban_length(begin[1].upper())
        if length and (end := _find_end(view, begin.start(), length)):
            value = iban.compact(view[begin.start() : end])
            if iban.is_valid(value, check_country=False):
                yield Span(begin.start(), end, IBAN, value)


@cache
def _find_iban_length(country: str) -> int | None:
    structure = _IBAN_COUNTRIES.info(country)[0][1].get("bban")  # `4!a6!n8!n`
    return 4 + sum(map(int, _GROUP.findall(structure))) if structure else None


def _find_end(view: str, start: int, count: int) -> int | None:
    """Where the `count`th letter or digit from `start` ends; None if there are fewer,
    or if another letter or digit follows directly."""
    place = start
    for _ in range(count):
        if not (match := _CHARACTER.match(view, place)):
            return None
        place = match.end()
    return None if view[place : place + 1].isalnum() else place


# ---- national ids
# One pattern for all, so that the text is scanned once.
_NATIONAL = re.compile(
    r"""(?<![\w.\-])(?=[A-Z]{0,6}[ -]?\d)(?:
      (?:(?!000|666)[0-8]\d\d([- ])(?!00)\d\d\1(?!0000)\d{4}  # US: SSN
        | 9\d\d([- ])[5-9]\d\2\d{4}                             # US: ITIN
        | (?!BG|GB|NK|KN|TN|NT|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z]
          [ -]?\d\d[ -]?\d\d[ -]?\d\d[ -]?[A-D])                 # UK: NINO
    | (?P<nif>(?:\d{8}|[XYZ]-?\d{7})-?[A-Z])                      # Spain
    | (?P<nir>[12][ ]?\d\d[ ]?[01]\d[ ]?(?:\d\d|2[AB])[ ]?\d{3}[ ]?\d{3}[ ]?\d\d)
    | (?P<fiscal>[A-Z]{6}[ ]?\d\d[A-EHLMPRST]\d\d[ ]?[A-Z]\d{3}[A-Z])  # Italy
    | (?P<belgian>\d\d\.\d\d\.\d\d-\d{3}\.\d\d)
    | (?P<cpf>\d{3}\.\d{3}\.\d{3}-\d\d)                      # Brazil
    | (?P<ahv>756\.\d{4}\.\d{4}\.\d\d)                          # Switzerland
    | (?P<swedish>(?:19|20)?\d\d[01]\d[0-3]\d[-+]\d{4})
    | (?P<steuer>\d\d[ ]\d{3}[ ]\d{3}[ ]\d{3})                  # Germany, as printed
    )(?![\w]|-\d)""",
    re.IGNORECASE | re.VERBOSE,
)
_CHECKS: dict[str, Callable[[str], bool]] = {
    "nif": nif.is_valid,
    "nir": nir.is_valid,
    "fiscal": codicefiscale.is_valid,
    "belgian": rijksregister.is_valid,
    "ahv": ahv.is_valid,
    "cpf": cpf.is_valid,
    "swedish": personnummer.is_valid,
    "steuer": idnr.is_valid,
}
# Plain digits are recognised only after the name of an id.
_NAMES = (
    r"ssn|social security(?: number| no\.?)?|itin|national insurance(?: number| no\.?)?"
    r"|nino|bsn|burgerservicenummer|pesel|steuer-?id(?:nummer)?|steueridentifikations"
    r"nummer|personnummer|passport(?: number| no\.?)?|reisepass(?:nummer)?"
    r"|driv(?:er'?s|ing) licen[cs]e(?: number| no\.?)?|tax ?id(?: number)?"
    r"|national id(?:entity)?(?: card)?(?: number| no\.?)?|codice fiscale|dni|nie|nif"
    r"|cpf|curp|sv-?nummer|sozialversicherungsnummer|personalausweis(?:nummer)?"
    r"|num[ée]ro de s[ée]curit[ée] sociale|n[º°o]? de s[ée]curit[ée] sociale"
    r"|rijksregisternummer|social"
    r"|nir|n\.?i\.? (?:number|no\.?)|id card(?: number| no\.?)?"
)
_NAMED = re.compile(
    rf"(?<![\w])(?=[bcdinprst])(?:{_NAMES})(?:[ ]?(?:#|no\.?|n[º°])[ ]?)?"
    rf"(?:{SEPARATOR}|[ \t]{{1,2}}(?:is[ \t]{{1,2}})?|#|(?<=[#.º° ]))"
    r"((?:[A-Z]{1,3}[ ])?(?=[A-Z]{0,6}\d)[A-Z0-9]{1,20}"
    r"(?:[ .\-/](?=[A-Z]{0,3}\d)[A-Z0-9]{1,12}){0,6}(?:[ \-][A-Z])?)(?![\w])",
    re.IGNORECASE,
)


# `SSN078051120`: the label and the number in one word.
_JOINED = re.compile(
    r"(?<![A-Za-z0-9])(?=[abcdeijnoprs])(?:ssn|itin|bsn|pesel|dni|nif|nie|cpf|curp|nino"
    r"|nir|nss|svnr|ahv|cnp|egn|rut|oib|jmbg|idnr|steuer-?id(?:nr)?|personnummer"
    r"|passport|reisepass|codicefiscale)[-_#]?"
    r"((?=[A-Z]{0,6}\d)(?=[A-Z]{0,6}(?:[ .\-]?\d){5})"
    r"[A-Z0-9](?:[ .\-]?[A-Z0-9]){6,19})(?![\w])",
    re.IGNORECASE,
)


def find_national_ids(view: str) -> Iterator[Span]:
    """Ids whose form or checksum is known, and numbers after the name of an id."""
    for match in _NATIONAL.finditer(view):
        is_valid = _CHECKS.get(match.lastgroup or "")
        if is_valid is None or is_valid(match.group()):
            value = re.sub(r"[\W_]", "", match.group()).upper()
            yield Span(*match.span(), NATIONAL_ID, value)
    for match in _NAMED.finditer(view):
        value = re.sub(r"[\W_]", "", match[1]).upper()
        if len(value) >= 5:
            yield Span(*match.span(1), NATIONAL_ID, value)
    for match in _JOINED.finditer(view):
        value = re.sub(r"[\W_]", "", match[1]).upper()
        yield Span(*match.span(1), NATIONAL_ID, value)
