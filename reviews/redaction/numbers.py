"""Recognises numbers with a checksum: cards, IBANs and national ids."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import accumulate

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
_CARD_LENGTHS = range(13, 20)


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
        if _ISSUERS.fullmatch(number) and _LuhnSums(number).holds(0, len(number)):
            yield Span(*match.span(), CARD, number)
    for match in _CARD_LABEL.finditer(view):
        yield Span(*match.span(1), CARD, re.sub(r"\D", "", match[1]))


def _find_cards_in_run(run: str, offset: int) -> Iterator[Span]:
    groups = [match.span() for match in _GROUP.finditer(run)]
    digits = "".join(run[start:end] for start, end in groups)
    counted = [0, *accumulate(end - start for start, end in groups)]
    ends = {count: groups[n][1] for n, count in enumerate(counted[1:])}
    luhn = _LuhnSums(digits)
    taken = 0
    for n, (start, _) in enumerate(groups):
        if counted[n] < taken or digits[counted[n]] not in "23456":
            continue
        for length in reversed(_CARD_LENGTHS):
            stop = counted[n] + length
            if stop in ends and luhn.holds(counted[n], stop):
                number = digits[counted[n] : stop]
                if _ISSUERS.fullmatch(number):
                    yield Span(offset + start, offset + ends[stop], CARD, number)
                    taken = stop
                    break


class _LuhnSums:
    """The Luhn check of any part of a long run of digits, each in constant time."""

    def __init__(self, digits: str) -> None:
        plain = [int(digit) for digit in digits]
        doubled = [2 * d - 9 * (d > 4) for d in plain]
        pairs = list(zip(plain, doubled, strict=True))
        self.even = [0, *accumulate(p[n % 2] for n, p in enumerate(pairs))]
        self.odd = [0, *accumulate(p[1 - n % 2] for n, p in enumerate(pairs))]

    def holds(self, start: int, stop: int) -> bool:
        """Whether the digits from `start` to `stop` pass the check."""
        # From the right, the digits count plain and doubled in turn.
        sums = self.even if (stop - 1) % 2 == 0 else self.odd
        return (sums[stop] - sums[start]) % 10 == 0


# ---- IBAN (ISO 13616): length by country, remainder 1 of 97
_IBAN_LENGTHS = {
    "AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22,
    "BH": 22, "BR": 29, "BY": 28, "CH": 21, "CR": 22, "CY": 24, "CZ": 24, "DE": 22,
    "DK": 18, "DO": 28, "EE": 20, "EG": 29, "ES": 24, "FI": 18, "FO": 18, "FR": 27,
    "GB": 22, "GE": 22, "GI": 23, "GL": 18, "GR": 27, "GT": 28, "HR": 21, "HU": 28,
    "IE": 22, "IL": 23, "IQ": 23, "IS": 26, "IT": 27, "JO": 30, "KW": 30, "KZ": 20,
    "LB": 28, "LC": 32, "LI": 21, "LT": 20, "LU": 20, "LV": 21, "LY": 25, "MC": 27,
    "MD": 24, "ME": 22, "MK": 19, "MR": 27, "MT": 31, "MU": 30, "NL": 18, "NO": 15,
    "PK": 24, "PL": 28, "PS": 29, "PT": 25, "QA": 29, "RO": 24, "RS": 22, "SA": 24,
    "SC": 31, "SE": 24, "SI": 19, "SK": 24, "SM": 27, "ST": 25, "SV": 28, "TL": 23,
    "TN": 24, "TR": 26, "UA": 29, "VA": 22, "VG": 24, "XK": 20,
}  # fmt: skip
_IBAN_BEGIN = re.compile(
    r"(?<![A-Za-z0-9])([A-Za-z]{2})[ ]?\d[ ]?\d(?=[ \-.]{0,2}[A-Za-z0-9])"
)
_CHARACTER = re.compile(r"[ \-.]{0,2}([A-Za-z0-9])")


def find_ibans(view: str) -> Iterator[Span]:
    """International bank account numbers, with or without spaces."""
    for begin in _IBAN_BEGIN.finditer(view):
        length = _IBAN_LENGTHS.get(begin[1].upper())
        if length and (end := _find_end(view, begin.start(), length)):
            value = re.sub(r"[^A-Z0-9]", "", view[begin.start() : end].upper())
            if _compute_remainder(value[4:] + value[:4]) == 1:
                yield Span(begin.start(), end, IBAN, value)


def _find_end(view: str, start: int, count: int) -> int | None:
    """Where the `count`th letter or digit from `start` ends; None if there are fewer,
    or if another letter or digit follows directly."""
    place = start
    for _ in range(count):
        if not (match := _CHARACTER.match(view, place)):
            return None
        place = match.end()
    return None if view[place : place + 1].isalnum() else place


def _compute_remainder(value: str) -> int:
    return int("".join(str(int(char, 36)) for char in value)) % 97


# ---- national ids
def _build_weighted_sum(*weights: int) -> Callable[[str], int]:
    def total(value: str) -> int:
        return sum(w * int(d) for w, d in zip(weights, value, strict=True))

    return total


_compute_ahv_sum = _build_weighted_sum(1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1)
_DNI_LETTERS = "TRWAGMYFPDXBNJZSQVHLCKE"
_FISCAL_ODD = dict(
    zip(
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        [1, 0, 5, 7, 9, 13, 15, 17, 19, 21] * 2
        + [2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23],
        strict=True,
    )
)


def _is_dni(value: str) -> bool:
    number = (
        str("XYZ".find(value[0])) + value[1:-1] if value[0] in "XYZ" else value[:-1]
    )
    return _DNI_LETTERS[int(number) % 23] == value[-1]


def _is_nir(value: str) -> bool:
    body = value[:-2].replace("2A", "19").replace("2B", "18")
    return 97 - int(body) % 97 == int(value[-2:])


def _is_codice_fiscale(value: str) -> bool:
    total = sum(
        _FISCAL_ODD[c] if n % 2 == 0 else int(c, 36) - (10 if c.isalpha() else 0)
        for n, c in enumerate(value[:15])
    )
    return chr(ord("A") + total % 26) == value[15]


def _is_belgian_number(value: str) -> bool:
    check = int(value[9:])
    return check in {97 - int(value[:9]) % 97, 97 - int("2" + value[:9]) % 97}


def _is_cpf(value: str) -> bool:
    """Two check digits, each computed from all digits before it."""
    for length in (9, 10):
        total = sum((length + 1 - n) * int(d) for n, d in enumerate(value[:length]))
        if total * 10 % 11 % 10 != int(value[length]):
            return False
    return len(set(value)) > 1


def _is_personnummer(value: str) -> bool:
    return _LuhnSums(value[-10:]).holds(0, 10)


def _is_steuer_id(value: str) -> bool:
    """ISO 7064 MOD 11,10."""
    product = 10
    for digit in value[:10]:
        total = (int(digit) + product) % 10 or 10
        product = 2 * total % 11
    return (11 - product) % 10 == int(value[10])


# One pattern for all, so that the text is scanned once.
_NATIONAL = re.compile(
    r"""(?<![\w.\-])(?=[A-Z]{0,6}[ -]?\d)(?:
      (?:(?!000|666)[0-8]\d\d([- ])(?!00)\d\d\1(?!0000)\d{4}  # US: SSN
        | 9\d\d([- ])[5-9]\d\2\d{4}                             # US: ITIN
        | (?!BG|GB|NK|KN|TN|NT|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z]
          [ -]?\d\d[ -]?\d\d[ -]?\d\d[ -]?[A-D])                 # UK: NINO
    | (?P<dni>(?:\d{8}|[XYZ]-?\d{7})-?[A-Z])                      # Spain
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
    "dni": _is_dni,
    "nir": _is_nir,
    "fiscal": _is_codice_fiscale,
    "belgian": _is_belgian_number,
    "ahv": lambda value: _compute_ahv_sum(value) % 10 == 0,
    "cpf": _is_cpf,
    "swedish": _is_personnummer,
    "steuer": _is_steuer_id,
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
        value = re.sub(r"[\W_]", "", match.group()).upper()
        holds = _CHECKS.get(match.lastgroup or "")
        if holds is None or (value.isascii() and holds(value)):
            yield Span(*match.span(), NATIONAL_ID, value)
    for match in _NAMED.finditer(view):
        value = re.sub(r"[\W_]", "", match[1]).upper()
        if len(value) >= 5:
            yield Span(*match.span(1), NATIONAL_ID, value)
    for match in _JOINED.finditer(view):
        value = re.sub(r"[\W_]", "", match[1]).upper()
        yield Span(*match.span(1), NATIONAL_ID, value)
