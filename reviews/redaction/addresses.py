"""Recognises street lines, units, postcodes, and the city beside a street.

Each part gets its own chip, so that its tag can be compared with an order's. A city
without a street, and the state or country, stay readable.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .spans import ADDRESS, SEPARATOR, Span, normalise_value

# ---- number first: 710 Sunset Drive, 12b St. Mary's Road
_ALWAYS = (
    "street|avenue|boulevard|lane|road|drive|highway|parkway|crescent|terrace|mews"
    "|st|ave|blvd|ln|rd|dr|hwy|pkwy|cres"
)
_CAPITALISED = (
    "Court|Ct|Place|Pl|Square|Sq|Way|Circle|Cir|Close|Gardens|Gdns|Grove|Hill|Loop"
    "|Park|Path|Pike|Plaza|Point|Quay|Rise|Row|Run|Trail|Turnpike|View|Walk|Wharf|Yard"
)
_BETWEEN = (
    "to|at|the|for|of|and|or|in|on|is|it|my|by|from|with|a|an|this|that|item|items"
    "|order|orders|day|days|hour|hours|minute|minutes|min|mile|miles|km|year|years"
    "|inch|tb|gb|mb|per|x|hard|flash|usb|thumb|state|disk|pen|test|external|portable"
    "|more|other|new|way|your|our|was|will|are|as|be"
)
_WORD = rf"(?!(?:{_BETWEEN})\b)(?!\d++[ \t,])[^\W_][\w'.\-]{{0,24}}"
_NUMBER_FIRST = re.compile(
    rf"\d(?<![\w.,$€£#/:\-]\d)\d{{0,5}}[a-z]?(?:[\-/]\d{{1,4}}[a-z]?)?,?[ \t]{{1,3}}"
    rf"(?:(?:{_WORD})[ \t]{{1,3}}){{1,4}}?"
    rf"(?P<suffix>{_ALWAYS}|{_CAPITALISED})\b\.?"
    r"(?:[ \t](?:N|S|E|W|NE|NW|SE|SW|North|South|East|West)\b)?",
    re.IGNORECASE,
)
_ONE_WORD = re.compile(
    r"\d(?<![\w.,$€£#\-]\d)\d{0,4}(?:[ \t]{1,3}"
    r"(?:[NSEW]\.?[ \t]|(?:North|South|East|West)[ \t])?"
    r"(?:Broadway|Piccadilly|Bowery|Embarcadero|Whitehall|Cheapside|Kingsway)\b"
    r"|[ \t](?:Avenue|Ave\.?)[ \t]"
    r"(?:[A-Z]\b|of[ \t]the[ \t][A-Z][a-z]+)"
    r"|(?:[ \t](?:bis|ter))?,?[ \t]"
    r"(?:[Rr]ue|[Aa]venue|[Bb]oulevard|[Bb]d|[Qq]uai|[Cc]hemin|[Aa]llée|[Ii]mpasse"
    r"|[Cc]ours|[Pp]lace|[Rr]oute|[Vv]ia|[Pp]iazza|[Cc]alle)[ \t]"
    r"(?:(?:de|du|des|la|le|les|del|della|d'|l')[ \t]?){0,3}"
    r"[^\W\d_a-z][\w'\-]*(?:[ \t][^\W\d_a-z][\w'\-]*){0,3})"
)
_PO_BOX = re.compile(
    r"\b(?:P\.?[ ]?O\.?[ ]?Box|Post Office Box|Postfach|Postbus|Apartado)[ ]{1,2}"
    r"(?:No\.?[ ]?)?\d[\d ]{0,8}",
    re.IGNORECASE,
)

# ---- name first: Hauptstraße 12, Keizersgracht 123-B, Calle de Alcalá 42, Via Roma, 10
_HOUSE = r"\d{1,4}(?:[ ]?[a-zA-Z]\b|(?:[\-/]\d{1,4}){1,2}|-[A-Z]\b)?(?![\w]|[.,]\d)"
# Bounded: otherwise a run of "A.A.A." would take quadratic time.
_CAPITAL = r"[^\W\d_a-z][\w'.\-]{0,40}+"
_ENDINGS = (
    "straße strasse str. weg gasse platz allee ufer damm laan straat gracht plein kade "
    "dijk singel gatan vägen vej gade veien"
)
_ENDS_LIKE_STREET = "|".join(f"(?<={re.escape(ending)})" for ending in _ENDINGS.split())
_RINGS = (
    "Opern|Park|Schotten|Stuben|Burg|Schubert|Universitäts|Wall|Stadt|Hansa|Sachsen"
    "|Hohenzollern|Barbarossa|Kaiser|Altstadt|Donau|Süd|Nord|Ost|West"
)
_GERMANIC = re.compile(
    r"(?<!\w)(?=[^\W\d_a-z])(?:"
    rf"(?!Brigade|Renegade)[\w.\-]{{4,40}}+(?:{_ENDS_LIKE_STREET})[ ]{{1,2}}{_HOUSE}"
    rf"|(?:{_CAPITAL}[ ]){{1,3}}(?:Straße|Strasse|Str\.|Straat|Weg|Allee|Gasse|Damm"
    rf"|Ufer|Laan|Platz|Kade|Gracht|Plein|Singel|Dijk)[ ]{{1,2}}{_HOUSE}"
    # "Engineering 101" and "Spring 2026" end like a street of Vienna.
    rf"|(?:{_RINGS})ring[ ]{{1,2}}{_HOUSE}"
    rf"|(?:[\w\-]{{2,30}}er|Am|Alter|Neuer)[ ]Ring[ ]{_HOUSE}"
    rf"|[\w\-]{{2,30}}ring[ ]{_HOUSE}(?=,?\s{{1,2}}(?:[A-Z]{{1,2}}-)?\d{{4,5}}[ ])"
    rf"|[\w\-]{{3,40}}?(?:str\.|straße|strasse){_HOUSE}"
    rf"|(?:Am|An der|Auf der|Im|In der|Unter den|Zum|Zur)[ ]{_CAPITAL}[ ]{{1,2}}"
    r"\d{1,4}[a-z]?(?=,?\s{1,2}(?:[A-Z]{1,2}-)?\d{4,5}[ ]))"
)
_ROMANCE = re.compile(
    r"(?<![\w])(?=[ACLPRTV])(?:Calle|C/|Avenida|Avda\.?|Av\.?|Alameda"
    r"|Paseo|Plaza|Carrer|Via|Viale|Piazza|Corso|Largo|Rua|Travessa|Praça)[ ]{0,2}"
    r"(?:(?:de|del|della|di|da|do|das|dos|la|las|los|el)"
    rf"[ ]){{0,3}}{_CAPITAL}(?:[ ](?:(?:de|del|di|da|do|e)[ ])?{_CAPITAL}){{0,4}}"
    rf",?[ ](?:n[º°.o]{{1,2}}[ ]?)?{_HOUSE}"
)

_POLISH = re.compile(
    rf"(?<!\w)(?:ul|al|pl|os)\.[ ]?{_CAPITAL}(?:[ ]{_CAPITAL}){{0,2}}[ ]{_HOUSE}"
)
# Three numbers may be a date, so a ward, a city or the country must follow.
_WARDS = (
    "Shibuya|Ginza|(?:Nishi-)?Shinjuku|Roppongi|Akasaka|Minato|Chiyoda|Marunouchi"
    "|(?:Minami-|Kita-)?Aoyama|Ueno|Asakusa|Ikebukuro|Umeda|Namba|Jingumae|Meguro|Ebisu"
    "|Nihonbashi|Shinagawa|Shinsaibashi|Sakae|Azabu|Hiroo|Daikanyama|Kanda|Akihabara"
)
_KANJI = r"[\u3041-\u30ff\u3005\u4e00-\u9fff]"
_JAPANESE = re.compile(
    rf"\d(?<![\w\-/]\d)\d?-\d{{1,2}}(?:-\d{{1,3}})?,?[ ](?:(?:{_WARDS})\b"
    r"|[A-Z][a-z\-]{2,20}(?=[^\n\0]{0,40}"
    r"(?:-ku|-shi|-cho|\bTokyo|\bOsaka|\bKyoto|\bJapan)\b))"
    rf"|{_KANJI}{{1,20}}(?<![日付年月号])\d{{1,2}}(?:丁目\d{{1,3}}(?:番地?(?:\d{{1,3}}号?)?"
    r"|-\d{1,3}(?:-\d{1,3})?)|-\d{1,2}(?:-\d{1,3})?(?![\d\-]))"
)

# ---- around a street line
_UNIT = re.compile(
    r"[,.;]?\s{0,2}((?:suite|ste|apartment|apt|unit|flat|floor|fl|room|rm|building|bldg"
    r"|box)\b\.?[ ]?#?[ ]?[\w\-]{1,8}|\#[ ]?\w{1,8})",
    re.IGNORECASE,
)
_UNIT_BEFORE = re.compile(
    r"(?<![\w])((?:flat|unit|apartment|apt)\.?[ ]\w{1,6}),\s$", re.I
)
_UNIT_CONTEXT = 24
# These are parts of an address even alone, but "Office Suite 2019" is not.
_LONE_UNIT = re.compile(
    r"(?<!Office )(?<!Creative )\b(?:Suite|Apartment|Apt\.?)[ ]#?\d{1,5}[A-Za-z]?"
    r"(?![\w.])"
)

# ---- postcodes
_STATES = (
    "AL|AK|AZ|AR|CA|CO|CT|DE|DC|FL|GA|HI|ID|IL|IN|IA|KS|KY|LA|ME|MD|MA|MI|MN|MS|MO|MT"
    "|NE|NV|NH|NJ|NM|NY|NC|ND|OH|OK|OR|PA|PR|RI|SC|SD|TN|TX|UT|VT|VA|WA|WV|WI|WY"
)
_STATE_WORDS = "(?:IN|OR|OK|ME|HI)"  # not alone, as in "order OR 78291"
_STATE_NAMES = (
    "Alabama|Alaska|Arizona|Arkansas|California|Colorado|Connecticut|Delaware|Florida"
    "|Georgia|Hawaii|Idaho|Illinois|Indiana|Iowa|Kansas|Kentucky|Louisiana|Maine"
    "|Maryland|Massachusetts|Michigan|Minnesota|Mississippi|Missouri|Montana|Nebraska"
    "|Nevada|New Hampshire|New Jersey|New Mexico|New York|North Carolina|North Dakota"
    "|Ohio|Oklahoma|Oregon|Pennsylvania|Rhode Island|South Carolina|South Dakota"
    "|Tennessee|Texas|Utah|Vermont|Virginia|Washington|West Virginia|Wisconsin|Wyoming"
)
_UK_AREAS = (
    "AB AL B BA BB BD BH BL BN BR BS BT CA CB CF CH CM CO CR CT CV CW DA DD DE DG"
    " DH DL DN DT DY E EC EH EN EX FK FY G GL GU GY HA HD HG HP HR HS HU HX IG IM IP"
    " IV JE KA KT KW KY L LA LD LE LL LN LS LU M ME MK ML N NE NG NN NP NR NW OL OX"
    " PA PE PH PL PO PR RG RH RM S SA SE SG SK SL SM SN SO SP SR SS ST SW SY TA TD"
    " TF TN TQ TR TS TW UB W WA WC WD WF WN WR WS WV YO ZE"
)
_INWARD = r"\d[ABD-HJLNP-UW-Z]{2}"
_UK = re.compile(rf"(?<![\w])([A-Z]{{1,2}})\d[\dA-Z]?([ ]?){_INWARD}(?![\w])")
_CANADIAN = re.compile(
    r"(?<![\w])[ABCEGHJ-NPRSTVXY]\d[ABCEGHJ-NPRSTV-Z][ ]\d[A-Z]\d(?![\w])"
)
_ZIP = re.compile(r"\d(?<![\w.,$€£#/:\-]\d)\d{4}(?:-\d{4})?(?![\w]|[.,]\d)")
_BEFORE_ZIP = re.compile(
    rf"(?:(?:[a-z*,][ \t,*]{{1,3}}(?!{_STATE_WORDS}\b)|[A-Z][a-z]+[ ]|,[ \t*]{{1,3}})"
    rf"(?:{_STATES})"
    rf"|\b(?:{_STATE_NAMES})"
    r"|\b(?i:live|lives|living|moved|from|near|to|home)(?:[ ]in)?"
    r"(?:[ ][A-Z][a-z]+){1,3})[,*]{0,3}[ \t*]{1,3}$"
    r"|\b(?i:live|lives|living|am|reside)[ ](?:in|at)[ ]$"
    r"|\b(?i:zip|post(?:al)?)[ -]?(?i:code)?\b[^\d\n\0]{1,30}$"
)
_CONTINENTAL_LINE = re.compile(
    r"^[ \t]*(?:[A-Z]{1,2}-)?(\d{4,5}|[1-9]\d{3}[ ]?[A-Z]{2})[ ]{1,2}"
    rf"{_CAPITAL}(?:[ ]{_CAPITAL}){{0,3}},?[ \t]*$",
    re.MULTILINE,
)

_CITY = (
    r"[^\W\d_a-z][^\W\d_][\w'\-]{0,30}"
    r"(?:[ ](?:(?:de|do|da|del|di|am|an|der|la|den|upon)[ ]){0,2}"
    r"[^\W\d_a-z][\w'\-]{1,30}){0,2}"
)
_CONTINENTAL_PLACE = re.compile(
    r",?\s{1,3}((?:[A-Z]{1,2}-)?"
    r"(?:\d{5}-\d{3}|\d\d-\d{3}|[1-9]\d{3}[ ]?[A-Z]{2}|\d{4,5}))"
    rf"[ ]{{1,2}}({_CITY})"
)
_NO_CITY = (
    "Please|Thanks|Thank|The|This|That|It|He|She|They|We|You|And|But|If|Kind|Best|USA|UK"
    "|Germany|France|Spain|Italy|United|Regards|Hello|Hi|Dear|Order|Could|Can|My|Your"
)
_PLACE = re.compile(
    rf",?\s{{1,2}}(?!(?:{_NO_CITY}|{_STATES})\b)({_CITY}?)"
    rf"(?=,?[ ](?:(?:{_STATES})\b|{_STATE_NAMES}\b"
    rf"|[A-Z]{{1,2}}\d[\dA-Z]?[ ]{_INWARD}|\d{{3}}-\d{{4}}\b))"
    rf"|,[ ](?!(?:{_NO_CITY}|{_STATES})\b)({_CITY})"
)
_NAMED_CITY = re.compile(
    r"(?<![A-Za-z0-9])(?i:city|town|ort|stadt|ville|ciudad|cidade|plaats)"
    rf"{SEPARATOR}({_CITY})"
)
_CITY_LABEL_DISTANCE = 200  # characters between a street and the label of its city
_SECOND_SUFFIX = re.compile(rf"[ ](?:{_ALWAYS})\b\.?", re.IGNORECASE)

# ---- labelled
_NAMED_POSTCODE = re.compile(
    r"(?<![A-Za-z0-9])(?=[pz])(?:(?:zip|post(?:al)?)(?:[ _-]?code)?|postcode|plz)"
    rf"(?:{SEPARATOR}|[ \t*]{{1,3}}(?:is[ \t]{{1,2}})?(?=\*{{0,2}}\d))"
    rf"(\d{{5}}-\d{{4}}|[A-Z]{{1,2}}\d[A-Z\d]?[ ]?{_INWARD}|[A-Z]\d[A-Z][ ]?\d[A-Z]\d"
    r"|\d{4}[ ]?(?-i:[A-Z]{2})|(?=[A-Z\-]{0,6}\d)[A-Z0-9\-]{3,10})(?![\w])",
    re.IGNORECASE,
)
_NAMED_LINE = re.compile(
    r"(?<![A-Za-z0-9])(?=[als])(?<!ip )(?<!mac )(?<!web )(?<!email )(?<!mail )"
    r"(?:(?:street[ _-]?)?address(?:[ _-]?(?:line)?[ _-]?[1-3])?|line[ _-]?[1-3]"
    rf"|street(?:[ _-]?[1-3])?){SEPARATOR}"
    r"((?=[^\n\"\0]{0,60}\d)[^\s\"{\[\0\-][^\n\"\0]{2,80})",
    re.IGNORECASE,
)
_LINE_END = re.compile(r",? \*\*|\\|[.;](?: |$)|'[,}\]]|, (?=[A-Z])")
_POSTCODE_CONTEXT = 48  # characters before a number that are searched for context


_PATTERNS = (_NUMBER_FIRST, _ONE_WORD, _GERMANIC, _ROMANCE, _POLISH, _JAPANESE)


def find_addresses(view: str) -> Iterator[Span]:
    """Street lines with their units and cities, postcodes, and labelled address
    parts."""
    yield from _find_streets(view)
    yield from _find_postcodes(view)
    for pattern in (_PO_BOX, _LONE_UNIT):
        for match in pattern.finditer(view):
            yield _build_span(view, *match.span())
    for match in _NAMED_LINE.finditer(view):
        line = _LINE_END.split(match[1], maxsplit=1)[0].rstrip(" ,*_'`-")
        if any(char.isdigit() for char in line):
            yield _build_span(view, match.start(1), match.start(1) + len(line))


def _find_streets(view: str) -> Iterator[Span]:
    for pattern in _PATTERNS:
        for match in pattern.finditer(view):
            if pattern is _NUMBER_FIRST and not _is_street(match):
                continue
            start, end = match.span()
            # "12 Oak Hill Ave" has two suffixes.
            if more := _SECOND_SUFFIX.match(view, end):
                end = more.end()
            yield _build_span(view, start, end)
            yield from _find_surroundings(view, start, end)


def _find_postcodes(view: str) -> Iterator[Span]:
    for match in _ZIP.finditer(view):
        begin = max(0, match.start() - _POSTCODE_CONTEXT)
        if _BEFORE_ZIP.search(view[begin : match.start()]):
            yield _build_span(view, *match.span())
    for match in _UK.finditer(view):
        # The phone "S22 8GB" is not a Sheffield postcode.
        memory = len(match[1]) == 1 and match.group().endswith(("GB", "TB", "HZ"))
        spaced = match[2] or len(match[1]) == 2
        if match[1] in _UK_AREAS.split() and spaced and not memory:
            yield _build_span(view, *match.span())
    for pattern in (_CANADIAN, _CONTINENTAL_LINE, _NAMED_POSTCODE):
        for match in pattern.finditer(view):
            yield _build_span(view, *match.span(match.lastindex or 0))


def _build_span(view: str, start: int, end: int) -> Span:
    return Span(start, end, ADDRESS, normalise_value(ADDRESS, view[start:end]))


def _is_street(match: re.Match[str]) -> bool:
    """Whether the match is an address line and not part of a sentence."""
    words = match.group().rstrip(".").split()[1:]
    if re.fullmatch(_CAPITALISED, match["suffix"]):
        return all(word[0].isupper() or word[0].isdigit() for word in words)
    return bool(re.fullmatch(_ALWAYS, match["suffix"], re.IGNORECASE))


def _find_surroundings(view: str, start: int, end: int) -> Iterator[Span]:
    """The unit before or after a street line, and the city and postcode after it."""
    if unit := _UNIT.match(view, end):
        yield _build_span(view, *unit.span(1))
        end = unit.end()
    yield from _find_city_line(view, end)
    before = max(0, start - _UNIT_CONTEXT)
    if unit := _UNIT_BEFORE.search(view[before:start]):
        yield _build_span(view, before + unit.start(1), before + unit.end(1))


def _find_city_line(view: str, end: int) -> Iterator[Span]:
    """City and postcode after a street line, or a labelled city near it."""
    if place := _CONTINENTAL_PLACE.match(view, end):
        yield _build_span(view, *place.span(1))
        yield _build_span(view, *place.span(2))
    elif place := _PLACE.match(view, end):
        yield _build_span(view, *place.span(place.lastindex or 0))
    elif city := _NAMED_CITY.search(view, end, end + _CITY_LABEL_DISTANCE):
        yield _build_span(view, *city.span(1))
