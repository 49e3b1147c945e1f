"""Recognises e-mail addresses, including disguised ones, and phone numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator

import phonenumbers

from .spans import EMAIL, PHONE, Span

# Letters and digits of scripts that separate words. In the others (Chinese, Japanese,
# Korean) a sentence continues without a space. Those have no upper case, and to compile
# their ranges without regard to case takes 80 ms of every start.
_WORD = r"(?-i:[^\W\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af])"
_LOCAL = rf"(?:{_WORD}|[.+'~-]|%(?!40)[0-9A-F]{{2}})"
_LABEL = rf"(?:{_WORD}|-)"
_AT = r"(?:@|%40|&\#(?:64|x40);|&commat;|\\u0040)"
_EMAIL = re.compile(
    rf"(?<!{_WORD})(?<![.+'~-])(?:\"[^\"\n\0@]{{1,64}}\"|{_LOCAL}++){_AT}"
    rf"({_LABEL}++(?:\.{_LABEL}++)+)",
    re.IGNORECASE,
)
# In scripts without word breaks, take the last letters before the sign; a domain in
# such a script must end with an existing top-level domain.
_TOGETHER = r"(?-i:[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])"
_EAST_ASIAN = re.compile(
    rf"{_TOGETHER}{{1,20}}(?:[0-9]{{1,6}}(?=@{_TOGETHER}))?{_AT}(?:(?:{_TOGETHER}|[A-Za-z0-9-]){{1,40}}\.){{1,3}}"
    r"(?:\u5e7f\u544a|\u4e2d\u56fd|\u4e2d\u570b|\u516c\u53f8|\u7f51\u7edc|\u5728\u7ebf"
    r"|\u9999\u6e2f|\u53f0\u6e7e|\u53f0\u7063|\u7f51\u5e97|\u5546\u57ce|\u4e2d\u6587\u7f51"
    r"|\u307f\u3093\u306a|\u30b3\u30e0|\u30b9\u30c8\u30a2|\ud55c\uad6d|\ub2f7\ucef4"
    r"|[a-z]{2,12}(?![a-z]))",
    re.IGNORECASE,
)
_ENDINGS = (
    r"com|net|org|edu|gov|mil|int|info|biz|name|io|co|ai|app|dev|me|tv|cloud|online"
    r"|shop|store|eu|uk|us|ca|au|nz|ie|de|at|ch|fr|be|nl|lu|es|pt|it|pl|cz|se|no|dk|fi"
    r"|gr|ro|hu|ru|ua|tr|il|in|cn|jp|kr|sg|hk|br|mx|ar|cl|za|example|test|invalid"
)
_AT_WORD = (
    r"(?:at|ät|arobase|arroba|chiocciola|apenstaartje|klammeraffe|małpa|snabel-?a"
    r"|zavináč|собака)"
)
_DOT_WORD = r"(?:dot|punkt|point|punto|ponto|punt|kropka|tečka|точка)"
_SPELT_AT = (
    rf"(?:\s{{0,2}}[\[({{<]\s?(?:{_AT_WORD}|@)\s?[\])}}>]\s{{0,2}}"
    r"|[ \t]{1,2}@[ \t]{0,2}|@[ \t]{1,2})"
)
_BRACKETED_DOT = rf"\s{{0,2}}[\[({{<]\s?(?:{_DOT_WORD}|\.)\s?[\])}}>]\s{{0,2}}"
_SPELT_DOT = rf"(?:{_BRACKETED_DOT}|[ \t]?\.[ \t]?|[ \t]{{1,2}}{_DOT_WORD}[ \t]{{1,2}})"
_SPELT_EMAIL = re.compile(
    rf"(?<!{_WORD})(?<![.+'~-]){_LOCAL}++"
    rf"(?:[ \t]{{1,2}}{_DOT_WORD}[ \t]{{1,2}}{_LOCAL}++){{0,3}}(?:"
    rf"{_SPELT_AT}{_LABEL}{{1,63}}+(?:{_SPELT_DOT}{_LABEL}{{1,63}}+){{0,3}}?"
    rf"{_SPELT_DOT}(?:{_ENDINGS})"
    rf"|[ \t]{{1,2}}{_AT_WORD}[ \t]{{1,2}}{_LABEL}{{1,63}}+"
    rf"(?:[ \t]{{1,2}}{_DOT_WORD}[ \t]{{1,2}}{_LABEL}{{1,63}}+){{0,3}}?"
    rf"[ \t]{{1,2}}{_DOT_WORD}[ \t]{{1,2}}(?:{_ENDINGS})"
    rf"|{_AT}{_LABEL}{{1,63}}+(?:{_SPELT_DOT}{_LABEL}{{1,63}}+){{0,3}}?"
    rf"(?:{_BRACKETED_DOT}|[ \t]{{1,2}}{_DOT_WORD}[ \t]{{1,2}})(?:{_ENDINGS})"
    rf")(?!{_LABEL})",
    re.IGNORECASE,
)

# `john.doe at example.com`: a sentence has no such word before "at", unless it names a
# file or a host. After `e-mail:` any word counts.
_NAMED_AT = re.compile(
    rf"(?<!{_WORD})(?<![.+'~@/-])(?:(?:[a-z]{{1,30}}[._]){{1,3}}"
    rf"(?!(?:{_ENDINGS}|js|ts|py|md|html?|css|json|ya?ml|txt|pdf|docx?|xlsx?|csv|sh|exe"
    r"|png|jpe?g|log|sql|zip|gz|toml|lock|rs|rb|go|java)[ \t])[a-z]{2,30}\d{0,6}"
    r"|(?<=mail: )[a-z][\w.+-]{0,60})"
    rf"[ \t]{{1,2}}{_AT_WORD}[ \t]{{1,2}}"
    rf"{_LABEL}{{1,63}}+(?:\.{_LABEL}{{1,63}}+){{0,3}}?\.(?:{_ENDINGS})(?!{_LABEL}|\.{_LABEL})",
    re.IGNORECASE,
)
_NUMBERS_BEHIND = re.compile(r"(?:\.[\d-]+)+$")
_ANY_AT = re.compile(
    rf"\s*(?:[\[({{<]\s?(?:{_AT_WORD}|@)\s?[\])}}>]|{_AT}|\b{_AT_WORD}\b)\s*",
    re.IGNORECASE,
)
_ANY_DOT = re.compile(
    rf"\s*(?:[\[({{<]\s?(?:{_DOT_WORD}|\.)\s?[\])}}>]|\.|\b{_DOT_WORD}\b)\s*",
    re.IGNORECASE,
)

# Quick tests that skip the slow patterns above: most texts contain no address.
_AT_SIGN = re.compile(r"@|%40|&#|&commat|\\u0040")
_SPELT = re.compile(
    rf"[\[({{<]\s?(?:{_AT_WORD}|@|{_DOT_WORD})\s?[\])}}>]"
    rf"|[ \t]{_DOT_WORD}[ \t]|@[ \t]|[ \t]@",
    re.IGNORECASE,
)

_AT_ALONE = re.compile(rf"[ \t]{_AT_WORD}[ \t]", re.IGNORECASE)

_DIGITS = r"(?:[ \t\-.()/]{0,3}\d)"
_INTERNATIONAL = re.compile(
    rf"(?<![\w+])(?:\+|00(?=[1-9]\d))[ ]?\(?\d{_DIGITS}{{6,14}}(?!\d)"
)
_NORTH_AMERICAN = re.compile(
    r"[(\d](?<![\w.\-][(\d])(?:(?<=1)[ .\-]?\(?[2-9])?"
    r"(?:(?<=\()[2-9])?(?<=[2-9])\d\d(?:\)[ .\-]{0,2}|[ .\-])\d{3}[ .\-]\d{4}"
    r"(?![\w]|[.\-]\d)"
)
_TRUNK = re.compile(
    r"[(0](?<![\w.\-/(][(0])(?:(?<=\()0)?(?<=0)\d{1,5}\)?(?:[ \t\-./]{1,2}\d{2,8}){1,5}"
    r"(?![\w])"
)
_LABELLED = re.compile(
    r"\b(?=[cfhmprtw])(?:(?:tele)?phone|tel|mobile|cell|fax|whats ?app|handy"
    r"|t[ée]l[ée]phone|tel[ée]fono|telefon|call|text|reach|ring)\b"
    rf"[^\d\n\0]{{0,24}}?(?<![\w#.,\-/$€£])(\(?\d{_DIGITS}{{6,14}})(?![\w])",
    re.IGNORECASE,
)
_DATE = re.compile(
    r"\d(?<!\d\d)(?:(?:(?<=1)9|(?<=2)0)\d\d[-/.]\d\d?[-/.]\d\d?|\d?[-/.]\d\d?[-/.](?:19|20)\d\d)(?!\d)"
)
_REGIONS = ("GB", "DE", "FR", "NL", "BE", "IE", "IT", "ES", "SE", "CH", "AT", "AU")
# After this many checks, anything that looks like a number counts as one: checks are
# slow, and honest texts have fewer.
_MAX_CHECKS = 300


def find_emails(view: str) -> Iterator[Span]:
    """E-mail addresses: plain, encoded, or with a spelt-out `(at)` and `(dot)`."""
    for match in _EMAIL.finditer(view) if _AT_SIGN.search(view) else ():
        # A number directly after the domain is not part of it, and "3@4.99" is not an
        # address.
        domain = _NUMBERS_BEHIND.sub("", match[1])
        cut = len(match[1]) - len(domain) if "." in domain else 0
        address = match.group()[: match.end() - match.start() - cut]
        if any(char.isalpha() for char in match.group()):
            yield _build_email_span(match.start(), address)
    for match in _EAST_ASIAN.finditer(view) if "@" in view else ():
        yield _build_email_span(match.start(), match.group())
    for match in _SPELT_EMAIL.finditer(view) if _SPELT.search(view) else ():
        yield _build_email_span(match.start(), match.group())
    for match in _NAMED_AT.finditer(view) if _AT_ALONE.search(view) else ():
        yield _build_email_span(match.start(), match.group())


def _build_email_span(start: int, text: str) -> Span:
    begun = text.lstrip(".+'~-")
    start += len(text) - len(begun)
    address = begun.rstrip("-")
    plain = _ANY_DOT.sub(".", _ANY_AT.sub("@", address))
    return Span(start, start + len(address), EMAIL, plain.lower())


def find_phones(view: str) -> Iterator[Span]:
    """Numbers with a country code, in a national form, or after a word for one."""
    dates = _find_date_starts(view)
    checks = _NumberChecks()
    for match in _INTERNATIONAL.finditer(view):
        if number := checks.international(match.group()):
            yield _build_phone_span(match.start(), number)
    for match in _NORTH_AMERICAN.finditer(view):
        digits = re.sub(r"\D", "", match.group())[-10:]
        yield Span(*match.span(), PHONE, f"+1{digits}")
    for match in _TRUNK.finditer(view):
        if match.start() not in dates and (number := checks.national(match.group())):
            yield _build_phone_span(match.start(), number)
    for match in _LABELLED.finditer(view):
        if match.start(1) not in dates:
            yield Span(*match.span(1), PHONE, checks.labelled(match[1]))


def _build_phone_span(start: int, number: tuple[int, str]) -> Span:
    length, value = number
    return Span(start, start + length, PHONE, value)


def _find_date_starts(view: str) -> frozenset[int]:
    return frozenset(match.start() for match in _DATE.finditer(view))


class _NumberChecks:
    """Validates numbers against the numbering plans, up to `_MAX_CHECKS` times."""

    def __init__(self) -> None:
        self.left = _MAX_CHECKS

    def international(self, text: str) -> tuple[int, str] | None:
        """The length of the first number in `text`, and its E.164 form; None if it is
        not a number. Text that begins with `+` counts even if no prefix of it is
        valid."""
        for end in _list_number_ends(text):
            if number := self._valid(_to_dialled_number(text[:end]), None):
                return end, number
        if text.startswith("+") or self.left <= 0:
            return len(text), _to_dialled_number(text)
        return None

    def national(self, text: str) -> tuple[int, str] | None:
        """The same for a number in the national form of a supported region."""
        if not 9 <= len(re.sub(r"\D", "", text)) <= 15:
            return None
        if self.left <= 0:
            return len(text), re.sub(r"\D", "", text)
        for region in _REGIONS:
            if number := self._valid(text, region):
                return len(text), number
        return None

    def labelled(self, text: str) -> str:
        """The E.164 form if it is a valid number of the US, else its digits."""
        digits = re.sub(r"\D", "", text)
        north_american = self._valid(digits, "US")
        return north_american or digits

    def _valid(self, text: str, region: str | None) -> str:
        if self.left <= 0:
            return ""
        self.left -= 1
        try:
            number = phonenumbers.parse(text, region)
        except phonenumbers.NumberParseException:
            return ""
        if not phonenumbers.is_valid_number(number):
            return ""
        form = phonenumbers.PhoneNumberFormat.E164
        return str(phonenumbers.format_number(number, form))


def _to_dialled_number(text: str) -> str:
    """`+` and the digits. Drops the 0 of "+44 (0)20", which is not dialled from
    abroad."""
    digits = re.sub(r"\(0\)|\D", "", text)
    return f"+{digits if text.startswith('+') else digits[2:]}"


def _list_number_ends(text: str) -> Iterator[int]:
    """Where the first number may end, the longest first: a second number may follow
    it."""
    yield len(text)
    for match in reversed(list(re.finditer(r"(?<=\d)[ \t]", text))):
        yield match.start()
