"""What a recogniser reports, the kinds of values, and the member names and labels that
imply a kind, such as `password:`, `"zip":` or `Phone -`."""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple


class Span(NamedTuple):
    """A range of the folded text, its kind, and the value in its normal form."""

    start: int
    end: int
    kind: str
    value: str


EMAIL, PHONE, CARD, IBAN = "e-mail", "phone", "card", "IBAN"
NATIONAL_ID, SECRET, TOKEN, ADDRESS = "national id", "secret", "token", "address"
KINDS = (EMAIL, PHONE, CARD, IBAN, NATIONAL_ID, SECRET, TOKEN, ADDRESS)

# Between a label and its value: `: `, ` = `, `" : "`, `:** `, `\": \"`.
SEPARATOR = r"[\s\"'*_`\\]{0,4}(?::|=>?)[\s\"'*_`\\]{0,4}"

# Names of JSON members, in lower case without separators.
_MEMBER_NAMES = {
    SECRET: (
        "password passwd pwd passphrase passcode secret clientsecret secretkey apikey "
        "privatekey signingkey encryptionkey accesskey secretaccesskey credentials "
        "pin cvv cvc cvv2 cvn csc securitycode otp pw pswd passwort kennwort "
        "geheimzahl motdepasse mdp contraseña contrasena clave senha palavrapasse "
        "wachtwoord pincode parola hasło haslo lösenord losenord pinkod adgangskode "
        "kodeord passord salasana heslo jelszó şifre пароль пинкод 密码 密碼 "
        "パスワード 暗証番号 비밀번호"
    ),
    TOKEN: (
        "token accesstoken refreshtoken authtoken idtoken bearertoken sessiontoken "
        "sessionid csrftoken authorization cookie setcookie"
    ),
    NATIONAL_ID: (
        "ssn socialsecuritynumber socialsecurity nationalid nationalinsurancenumber "
        "nino passport passportnumber passportno taxid taxpayerid driverslicense "
        "driverslicence driverlicense drivinglicence bsn pesel dni nie nif"
    ),
    IBAN: "iban",
    CARD: (
        "cardnumber creditcardnumber kartennummer numérodecarte numerodecarte "
        "númerodetarjeta númerodecartão kaartnummer numerocarta numerkarty "
        "kortnummer номеркарты 卡号 カード番号"
    ),
    PHONE: "phone phonenumber telephone mobile mobilenumber cellphone fax",
    ADDRESS: (
        "address1 address2 address3 addressline1 addressline2 addressline3 line1 "
        "line2 line3 street street1 street2 streetaddress zip zipcode postcode "
        "postalcode plz"
    ),
}
_KIND_OF = {
    name: kind for kind, names in _MEMBER_NAMES.items() for name in names.split()
}
_CITIES = {"city", "town", "cityname", "locality", "suburb"}
_STREET_WORDS = {
    "st": "street", "str": "street", "ave": "avenue", "av": "avenue", "rd": "road",
    "ln": "lane", "dr": "drive", "blvd": "boulevard", "ct": "court", "pl": "place",
    "sq": "square", "hwy": "highway", "pkwy": "parkway", "ter": "terrace",
    "cres": "crescent", "apt": "apartment", "ste": "suite", "fl": "floor",
}  # fmt: skip


def classify_name(name: str) -> str:
    """The kind of value that a member of this name holds, or "" for none."""
    plain = unicodedata.normalize("NFC", name).lower()
    return _KIND_OF.get(re.sub(r"[\W_]", "", plain), "")


def is_city_name(name: str) -> bool:
    """Whether a member of this name holds a city. A city is redacted only beside a
    street."""
    return re.sub(r"[^a-z]", "", name.lower()) in _CITIES


def normalise_value(kind: str, value: str) -> str:
    """The normal form, in which two spellings of one value are equal."""
    if kind in {SECRET, TOKEN}:
        return value
    if kind == EMAIL:
        return value.lower()
    if kind == ADDRESS:
        words = re.findall(r"\w+", value.lower())
        if any(len(word) > 4 for word in words) or len(words) > 2:
            return " ".join(_STREET_WORDS.get(word, word) for word in words)
    return re.sub(r"[\W_]", "", value).upper()
