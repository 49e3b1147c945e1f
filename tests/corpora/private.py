"""Made-up private values in made-up sentences, and texts that hold none.

Everything is made from templates under one seed: no value belongs to anybody. A
`Sample` says which parts of its text must not survive.
"""

from __future__ import annotations

import base64
import random
import re
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass

EACH = 48  # samples of each kind
ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"


@dataclass(frozen=True)
class Sample:
    """One text: its kind in the corpus, the kind of its chip, what must be gone."""

    kind: str
    chip: str
    text: str
    gone: tuple[str, ...]


NAMED_BANKS = [("GB", "NWBK", 14), ("NL", "ABNA", 10), ("PL", "", 24), ("BE", "", 12)]


class Maker:
    """Draws values. Check digits are computed here, not by what is tested."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def of(self, *choices: str) -> str:
        return self.rng.choice(choices)

    def some(self, alphabet: str, length: int) -> str:
        return "".join(self.rng.choice(alphabet) for _ in range(length))

    def digits(self, length: int) -> str:
        return self.some("0123456789", length)

    def password(self) -> str:
        word = self.of("Falcon", "winter", "Tr0ub4dor", "mango", "Kestrel", "oslo")
        return (
            f"{word}{self.of('!', '#', '_', '-', '&')}{self.digits(3)}{self.of(*'xQz')}"
        )

    def luhn(self, prefix: str, length: int) -> str:
        body = prefix + self.digits(length - len(prefix) - 1)
        total = 0
        for place, digit in enumerate(reversed(body)):
            value = int(digit) * (2 if place % 2 == 0 else 1)
            total += value - 9 if value > 9 else value
        return body + str(-total % 10)

    def card(self) -> tuple[str, ...]:
        """In its printed groups."""
        if self.rng.random() < 0.2:
            number = self.luhn(self.of("34", "37"), 15)
            return number[:4], number[4:10], number[10:]
        number = self.luhn(self.of("4", "4", "51", "53", "55", "6011", "2301"), 16)
        return number[:4], number[4:8], number[8:12], number[12:]

    def iban(self) -> str:
        country, bank, length = self.rng.choice(
            [
                ("DE", "", 18),
                ("FR", "", 23),
                ("ES", "", 20),
                ("AT", "", 16),
                *NAMED_BANKS,
            ]
        )
        account = bank + self.digits(length)
        spelt = "".join(str(int(c, 36)) for c in account + country + "00")
        return f"{country}{98 - int(spelt) % 97:02}{account}"

    def block(self) -> str:
        """Three numbers of a Japanese address."""
        return "-".join(str(self.rng.randrange(1, most)) for most in (9, 30, 30))

    def name(self) -> str:
        first = self.of("dana", "luis", "mika", "anne", "tariq", "jo", "sofia", "piotr")
        last = self.of("walker", "ortega", "lind", "meyer", "hassan", "novak", "costa")
        return f"{first}{self.of('.', '_', '', '-')}{last}{self.of('', '', '7', '82')}"

    def domain(self) -> str:
        name = self.of("mailbox", "posteo-demo", "fastpost", "acme-shop", "kantoor")
        return f"{name}.{self.of('com', 'org', 'de', 'fr', 'co.uk', 'io', 'net')}"


def cards(m: Maker) -> Iterator[Sample]:
    parts = m.card()
    separators = " ", "-", "", "/", ",", ".", ", ", "\n", "\r\n", " / ", " - ", "|", "_"
    number = m.rng.choice(separators).join(parts)
    text = m.of(
        "The customer read out {} and wants the refund there.",
        "Please charge {} exp 09/28.",
        "card on file: {}",
        "paid with {}\nthanks, Dana",
        "CC {}, cvv on the back",
        "My Visa is {}.",
        "Kartennummer {} bitte belasten",
        "numéro de carte : {}",
    )
    yield Sample("card", "card", text.format(number), (number,))


def ssns(m: Maker) -> Iterator[Sample]:
    area, group = m.rng.randrange(100, 665), m.rng.randrange(10, 99)
    serial = m.rng.randrange(1000, 9999)
    bare = f"{area}{group}{serial}"
    dashed = f"{area}-{group}-{serial}"
    label = m.of("SSN# ", "SSN ", "SSN: ", "ssn is ", "Social Security number: ")
    label = m.of(label, "social security no. ", "SSN #", "SSN no. ", "Social: ")
    number = m.of(bare, bare, dashed, f"{area} {group} {serial}")
    text = m.of("Her {}{}, born in Ohio.", "On the form: {}{}", "{}{}\nplease verify")
    yield Sample(
        "US social security number",
        "national id",
        text.format(label, number),
        (number,),
    )


def dni(m: Maker) -> str:
    number = m.digits(8)
    return number + "TRWAGMYFPDXBNJZSQVHLCKE"[int(number) % 23]


def cpf(m: Maker) -> str:
    digits = m.digits(9)
    for length in (10, 11):
        total = sum((length - n) * int(d) for n, d in enumerate(digits))
        digits += str(total * 10 % 11 % 10)
    return f"{digits[:3]}.{digits[3:6]}.{digits[6:9]}-{digits[9:]}"


def nir(m: Maker) -> str:
    body = f"{m.of('1', '2')}{m.rng.randrange(50, 99)}{m.rng.randrange(1, 13):02}"
    body += f"{m.rng.randrange(10, 95)}{m.digits(6)}"
    return body + f"{97 - int(body) % 97:02}"


def national_ids(m: Maker) -> Iterator[Sample]:
    number = m.rng.choice(
        [
            lambda: f"{m.of('AB', 'CE', 'JR', 'WM')}{m.digits(6)}{m.of(*'ABCD')}",
            lambda: f"{m.of('AB', 'CE')} {' '.join(m.digits(2) for _ in range(3))} C",
            lambda: dni(m),
            lambda: cpf(m),
            lambda: nir(m),
        ]
    )()
    named = m.of("passport number", "Passport no.", "Reisepass", "PESEL", "bsn:", "BSN")
    if m.rng.random() < 0.4:
        number = f"{named} {m.of('C', 'X', '') if 'ass' in named else ''}{m.digits(9)}"
        value = number.split()[-1]
    else:
        value = number
    text = m.of("ID on record: {}.", "He sent a copy: {}", "{} (checked at the desk)")
    yield Sample("other national id", "national id", text.format(number), (value,))


def ibans(m: Maker) -> Iterator[Sample]:
    plain = m.iban()
    spaced = " ".join(plain[n : n + 4] for n in range(0, len(plain), 4))
    number = m.of(plain, spaced, spaced, plain.lower(), spaced.replace(" ", "-"))
    text = m.of(
        "Refund to {}.", "IBAN: {}", "Konto {} bei der Bank", "IBAN {} BIC ABCDDEFF"
    )
    yield Sample("IBAN", "IBAN", text.format(number), (number,))


def phones(m: Maker) -> Iterator[Sample]:
    area, line = m.of("212", "415", "773", "646"), m.digits(4)
    office = f"{m.rng.randrange(2, 10)}{m.digits(2)}"
    number = m.of(
        f"({area}) {office}-{line}",
        f"{area}-{office}-{line}",
        f"{area}.{office}.{line}",
        f"+1 {area} {office} {line}",
        f"+44 20 7946 {line}",
        f"020 7946 {line}",
        f"+49 30 {m.digits(4)}{line}",
        f"+33 6 {m.rng.randrange(10, 99)} {m.rng.randrange(10, 99)} 48 {line[:2]}",
        f"+34 612 {m.digits(3)} {m.digits(3)}",
    )
    text = m.of(
        "Call me at {} after six.", "tel: {}", "My number is {}.", "{} is her mobile"
    )
    yield Sample("phone", "phone", text.format(number), (number,))


def emails(m: Maker) -> Iterator[Sample]:
    name, domain = m.name(), m.domain()
    address = m.of(name, f"{name}+orders", name.upper()) + f"@{domain}"
    text = m.of(
        "Write to {}.", "E-mail: {}", "<{}>", "cc {} please", "mailto:{}?subject=hi"
    )
    yield Sample("e-mail", "e-mail", text.format(address), (address,))


def odd_emails(m: Maker) -> Iterator[Sample]:
    name, domain = m.name(), m.domain()
    first = name[:4]
    address, gone = m.rng.choice(
        [
            (f'"{first} doe"@{domain}', first),
            (f'"{first}.x y"@{domain}', first),
            ("用户" + f"@例子.{m.of('广告', '中国', '公司')}", "用户@例子"),
            (f"用户{m.digits(2)}@例子.公司", "例子.公司"),
            (f"{m.of('иван', 'анна')}@пример.рф", "пример"),
            (f"{m.of('jürgen', 'françois')}@bücher.example", "bücher"),
            (f"{first}%2Bnews%40{domain}", first),
            (f"{first}%2Bshop@{domain}", first),
            (f"{first}%2Etest%40{domain}", first),
        ]
    )
    text = m.of("Reach them at {} .", "from {}, yesterday", "?to={}&x=1", "user {}")
    yield Sample(
        "quoted, encoded or international e-mail",
        "e-mail",
        text.format(address),
        (address, gone),
    )


def spelt_emails(m: Maker) -> Iterator[Sample]:
    name = m.name().replace("-", "")
    host = m.of("mailbox", "fastpost", "kantoor", "acmeshop")
    end = m.of("com", "org", "de", "fr", "net")
    at = m.of(
        " (at) ", "(at)", " [at] ", " at ", "[at]", " AT ", " (ät) ", " {at} ", " <at> "
    )
    dots = [" dot ", " (dot) ", "(dot)", " [dot] ", " DOT "]
    dot = m.rng.choice(
        dots
        if at.strip().isalpha() and len(at.strip()) == 2
        else [*dots, ".", " punkt "]
    )
    if at.strip().lower() == "at":
        dot = m.of(" dot ", " DOT ", " (dot) ") if dot != " dot " else dot
        dot = m.of(" dot ", " DOT ")
    address = f"{name}{at}{host}{dot}{end}"
    text = m.of("Mail me: {}", "it is {} , thanks", "You can use {}.", "contact {}")
    yield Sample("spelt e-mail", "e-mail", text.format(address), (address, host))


def command_lines(m: Maker) -> Iterator[Sample]:
    password = m.password()
    text = m.of(
        "curl -u admin:{} https://api.acme.example/v1/orders",
        "run curl -s --user deploy:{} -X POST http://ci.acme.example/job",
        "mysql -h db1 -u root -p{} shop < dump.sql",
        "mysqldump -uadmin -p'{}' shop > /tmp/x.sql",
        "psql --password={} -h db.acme.example",
        "tool login --user dana --password {}",
        "PGPASSWORD={} psql -h db shop",
        "export DB_PASSWORD='{}'",
        "sshpass -p {} ssh root@10.0.0.4",
        "redis-cli -h cache -a {} ping",
        "docker login -u ci -p {} registry.acme.example",
        "helm install x --set auth.password={}",
        "postgres://shop:{}@db.acme.example:5432/shop",
        "redis://:{}@cache.acme.example:6379/0",
        "mongodb+srv://app:{}@cluster0.acme.example/orders",
        "Server=tcp:sql.acme.example;User ID=app;Password={};Encrypt=true",
        "Data Source=db;Uid=app;Pwd={};",
        "amqp://guest:{}@mq.acme.example//",
        "MYSQL_PWD={} mysqladmin status",
        "ldapsearch -x -D cn=admin -w {} -b dc=acme",
        "deploy --api-key={} --region eu",
    )
    yield Sample(
        "credential on a command line", "secret", text.format(password), (password,)
    )


def labelled(m: Maker) -> Iterator[Sample]:
    password = m.password()
    text = m.of(
        "Password: {}",
        "the password is {}",
        "Her passcode was {} until May.",
        "Passwort: {}",
        "Das Passwort lautet {}.",
        "Mein Kennwort ist {}, bitte prüfen.",
        "Kennwort = {}",
        "mot de passe : {}",
        "Le mot de passe est {}.",
        "mdp: {}",
        "contraseña: {}",
        "La contraseña es {}.",
        "clave de acceso: {}",
        "clave secreta = {}",
        "clé API : {}",
        '{{"password": "{}"}}',
        "client_secret={}",
        "**API key:** {}",
    )
    yield Sample("labelled secret", "secret", text.format(password), (password,))


def provider_keys(m: Maker) -> Iterator[Sample]:
    makers: list[Callable[[], str]] = [
        lambda: f"AccountKey={base64.b64encode(m.rng.randbytes(64)).decode()}",
        lambda: f"dapi{m.some(HEX, 32)}",
        lambda: f"lin_api_{m.some(ALNUM, 40)}",
        lambda: f"M{m.some(ALNUM, 25)}.{m.some(ALNUM, 6)}.{m.some(ALNUM + '_-', 38)}",
        lambda: f"{m.digits(10)}:AA{m.some(ALNUM + '_-', 33)}",
        lambda: f"AGE-SECRET-KEY-1{m.some('QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L', 58)}",
        lambda: f"private key 0x{m.some(HEX, 64)}",
        lambda: f"sk-proj-{m.some(ALNUM, 40)}",
        lambda: f"sk-ant-api03-{m.some(ALNUM, 60)}",
        lambda: f"ghp_{m.some(ALNUM, 36)}",
        lambda: f"glpat-{m.some(ALNUM, 20)}",
        lambda: f"AKIA{m.some(string.ascii_uppercase + '234567', 16)}",
        lambda: f"xoxb-{m.digits(12)}-{m.some(ALNUM, 24)}",
        lambda: f"sk_{m.of('live', 'test')}_{m.some(ALNUM, 24)}",
        lambda: f"AIza{m.some(ALNUM, 35)}",
        lambda: f"SG.{m.some(ALNUM, 22)}.{m.some(ALNUM, 43)}",
        lambda: f"npm_{m.some(ALNUM, 36)}",
        lambda: f"hf_{m.some(string.ascii_letters, 34)}",
        lambda: f"hvs.{m.some(ALNUM, 24)}",
    ]
    key = m.rng.choice(makers)()
    text = m.of(
        "It is {} for now.", "use {}", "config:\n  value: {}\n", "log line: {}", "'{}'"
    )
    value = key.split("Key=")[-1].split("private key ")[-1]
    yield Sample("provider key", "secret", text.format(key), (value,))


WORDS = re.findall(
    r"\w+",
    """
    abandon ability absent castle danger eager fabric galaxy habit icon
    jacket kitchen ladder magnet napkin object parade quality rabbit
    saddle tackle umbrella velvet wagon yellow zebra orbit pencil river
    sunset timber useful violin window
    """,
)


def seed_phrases(m: Maker) -> Iterator[Sample]:
    phrase = " ".join(m.rng.choice(WORDS) for _ in range(m.rng.choice([12, 24])))
    text = m.of(
        "seed phrase: {}", "My recovery phrase is {}", "mnemonic = {}", "Seed:\n{}"
    )
    yield Sample("labelled seed phrase", "secret", text.format(phrase), (phrase,))


def tokens(m: Maker) -> Iterator[Sample]:
    def part(size: int) -> str:
        return base64.urlsafe_b64encode(m.rng.randbytes(size)).decode().rstrip("=")

    jwt = f"eyJhbGciOiJIUzI1NiJ9.eyJ{part(30)}.{part(32)}"
    token = m.some(ALNUM, 32)
    text, value = m.rng.choice(
        [
            ("got {} back", jwt),
            ("Authorization: Bearer {}", jwt),
            ("curl -H 'Authorization: Bearer {}' https://x.example", token),
            ("https://x.example/cb?state=1&access_token={}", token),
            ("https://x.example/reset?token={}", token),
            ('{{"refresh_token": "{}"}}', token),
            ("session_id={}", token),
            ("access token: {}", token),
        ]
    )
    yield Sample("token", "token", text.format(value), (value,))


# Street lines with city and postcode, by country.
STREETS: dict[str, Callable[[Maker], tuple[str, str]]] = {
    "US": lambda m: (
        f"{m.rng.randrange(10, 9999)} "
        f"{m.of('Maple', 'Sunset', 'Oak Hill', 'Lincoln', 'N Elm')}"
        f" {m.of('Street', 'Ave', 'Drive', 'Lane', 'Blvd', 'Court', 'Rd.')}",
        m.of("Denver, CO 80239", "Austin, TX 78701", "Portland, OR 97205"),
    ),
    "UK": lambda m: (
        f"{m.rng.randrange(1, 180)}{m.of('', 'b')} "
        f"{m.of('High', 'Station', 'St. Mary', 'King')}"
        f" {m.of('Street', 'Road', 'Lane', 'Close', 'Terrace')}",
        m.of("Leeds LS1 4AP", "London SW1A 2AA", "Bristol BS1 5TR"),
    ),
    "DE": lambda m: (
        m.of(
            "Musterstr.",
            "Musterstr. ",
            "Hauptstraße ",
            "Lindenweg ",
            "Berliner Str. ",
            "Goethestraße ",
        )
        + f"{m.rng.randrange(1, 200)}{m.of('', 'a', ' b')}",
        m.of("10115 Berlin", "80331 München", "50667 Köln"),
    ),
    "AT": lambda m: (
        m.of(
            "Opernring ",
            "Kärntner Ring ",
            "Mariahilfer Straße ",
            "Josefsgasse ",
            "Parkring ",
        )
        + f"{m.rng.randrange(1, 99)}{m.of('', '/5', '/2/14')}",
        m.of("1010 Wien", "8010 Graz", "A-1070 Wien"),
    ),
    "FR": lambda m: (
        f"{m.rng.randrange(1, 120)}{m.of('', ' bis', ',')} "
        + m.of("rue de la Paix", "avenue Victor Hugo", "boulevard Voltaire")
        + m.of("", "", " Nord"),
        m.of("75002 Paris", "69001 Lyon", "13001 Marseille"),
    ),
    "ES": lambda m: (
        m.of(
            "Calle de Alcalá ",
            "Calle Mayor, ",
            "Av. de la Constitución ",
            "Paseo del Prado ",
            "C/ Serrano ",
        )
        + f"{m.rng.randrange(1, 150)}",
        m.of("28014 Madrid", "41001 Sevilla", "46002 Valencia"),
    ),
    "IT": lambda m: (
        m.of(
            "Via Roma, ",
            "Via Giuseppe Verdi ",
            "Corso Italia ",
            "Piazza Dante ",
            "Viale Europa ",
        )
        + f"{m.rng.randrange(1, 150)}",
        m.of("00184 Roma", "20121 Milano", "10121 Torino"),
    ),
    "NL": lambda m: (
        m.of(
            "Keizersgracht ",
            "Dorpsstraat ",
            "Stationsplein ",
            "Kerklaan ",
            "Oudezijdse Kade ",
        )
        + f"{m.rng.randrange(1, 300)}{m.of('', '-B', ' A')}",
        m.of("1015 CJ Amsterdam", "3511 AB Utrecht", "2514 GL Den Haag"),
    ),
    "PL": lambda m: (
        m.of(
            "ul. Marszałkowska ",
            "ul. Nowy Świat ",
            "al. Jerozolimskie ",
            "ul. Długa ",
            "pl. Bankowy ",
        )
        + f"{m.rng.randrange(1, 150)}{m.of('', '/12', 'A')}",
        m.of("00-590 Warszawa", "31-042 Kraków", "80-831 Gdańsk"),
    ),
    "BR": lambda m: (
        m.of(
            "Rua Augusta, ",
            "Av. Paulista, ",
            "Rua das Flores, ",
            "Avenida Brasil, ",
            "Alameda Santos, ",
        )
        + f"{m.rng.randrange(10, 2900)}",
        m.of("01310-100 São Paulo", "20040-002 Rio de Janeiro", "80020-300 Curitiba"),
    ),
    "JP": lambda m: (
        m.of(
            f"{m.block()} {m.of('Shibuya', 'Ginza', 'Nishi-Shinjuku')}",
            f"{m.of('渋谷', '銀座', '神南')}{m.block()}",
            m.of("渋谷", "銀座") + "{}丁目{}番{}号".format(*m.block().split("-")),
        ),
        m.of("Tokyo 150-0002", "Shibuya-ku, Tokyo 150-0041"),
    ),
}


def streets(country: str) -> Callable[[Maker], Iterator[Sample]]:
    def make(m: Maker) -> Iterator[Sample]:
        street, place = STREETS[country](m)
        text = m.of(
            "Please send it to {}, thanks.",
            "She lives at {}.",
            "New address: {}",
            "deliver to {}, " + place,
            "Ship to: {}\nand ring twice",
            "The parcel went to {} instead.",
        )
        yield Sample(f"street ({country})", "address", text.format(street), (street,))

    return make


def places(m: Maker) -> Iterator[Sample]:
    country = m.of("US", "UK", "DE", "AT", "FR", "ES", "IT", "NL", "PL", "BR")
    street, place = STREETS[country](m)
    text = m.of(
        "Send it to {}, {}.", "Ship to {}\n{}", "moved to {}, {} last May", "{}, {}"
    )
    words = [w for w in place.replace(",", "").split() if w[-1].islower()]
    code = max(
        place.replace(",", "").split(), key=lambda w: sum(c.isdigit() for c in w)
    )
    city = next((w for w in words if len(w) > 3), words[0])
    yield Sample(
        "city and postcode beside a street",
        "address",
        text.format(street, place),
        (street, city, code),
    )


MAKERS: tuple[Callable[[Maker], Iterator[Sample]], ...] = (
    cards,
    ibans,
    ssns,
    national_ids,
    phones,
    emails,
    odd_emails,
    spelt_emails,
    command_lines,
    labelled,
    provider_keys,
    seed_phrases,
    tokens,
    *map(streets, STREETS),
    places,
)


def samples(seed: int = 16) -> list[Sample]:
    """`EACH` of every kind, all different, the same for one seed."""
    found: list[Sample] = []
    for number, make in enumerate(MAKERS):
        maker = Maker(100 * seed + number)
        own: dict[str, Sample] = {}
        while len(own) < EACH:
            for sample in make(maker):
                own.setdefault(sample.text, sample)
        found += own.values()
    return found


HARMLESS = (
    "Order W{d7} shipped on 2026-{mm}-{dd} with tracking 1Z{A6}{d10}.",
    "Tracking number 94{d10}{d10} was scanned in Denver.",
    "commit {h40} fixes the rounding of totals",
    "merge {h7} into release-{n}.{n}.{n}",
    "Version {n}.{n}.{n} of {dd}.{mm}.2026 runs on port 80{dd}.",
    "sha256:{h64}",
    "tx 0x{h64} was mined in block {d8}",
    "for (let i = {n}; i < {d3}; i++) {{ total += prices[i]; }}",
    "def refund(order_id: str, amount: Decimal = Decimal('{d2}.{d2}')) -> None: ...",
    "The total is {d3}.{d2} USD, of which {d2}.{d2} is tax.",
    "item {d10}, product {d10}, quantity {n}",
    "meet at 10:{mm} on 2026/{mm}/{dd} in room {d3}",
    "The customer asked twice why order {d5} has not arrived after {n} business days.",
    "GET /api/v1/orders/{d5}?page={n}&limit={d2} took {d3} ms",
    "uuid {u} and request id {h12}",
    "SELECT id, total FROM orders WHERE id = {d5} AND status = 'paid';",
    "size {n} x {d2} x {d3} mm, weight {n}.{d2} kg, EAN {d4}",
    "The password must be reset within {n} days; the old one stops working.",
    "Passwort vergessen? Die Seite antwortet mit {d3}.",
    "Le mot de passe est invalide, dit la page {n}.",
    "La contraseña es incorrecta desde el {dd} de mayo.",
    "make test -n {n} --timeout={d3} --output=report.txt",
    "git log -p -u --oneline --since={n}.weeks -n {d2}",
    "curl -sS -o out.json https://api.acme.example/v{n}/orders/{d5}",
    "She paid with the card ending in {d4} on {mm}/{dd}/2026.",
    "Row {n}: {d2}, {d3}, {d2}, {d3}, {d2}",
    "At {n} dot points the report ends; look at the point of sale.",
    "Return window: {d2} days. Restocking fee {n} %. Case #{d6}.",
    "IP 10.{n}.{d2}.{n} answered in {d2}.{d2} ms from eu-west-{n}",
    "Seed {d5} gave {n} wins; the recovery took {d2} minutes in all.",
    "She will ring {n} times in the spring of 20{d2}.",
    "The ring {d2} costs more than the string {n} beside it.",
    "p-{c20} was approved as g-{c20}",
    "Invoice RE-2026-{d5}, article no. {d6}-{d2}, lot {A6}",
)


def harmless() -> list[str]:
    """More than 500 texts that hold nothing private."""
    m = Maker(99)
    alphabets = {"d": "0123456789", "h": HEX, "A": string.ascii_uppercase}
    alphabets["c"] = "0123456789abcdefghjkmnpqrstvwxyz"

    def filled(text: str) -> str:
        for letter, alphabet in alphabets.items():
            for size in range(64, 1, -1):
                while (place := f"{{{letter}{size}}}") in text:
                    drawn = m.some(alphabet, size)
                    text = text.replace(place, drawn, 1)
        for place, low, high in (("{n}", 1, 9), ("{dd}", 10, 28), ("{mm}", 10, 12)):
            while place in text:
                text = text.replace(place, str(m.rng.randrange(low, high + 1)), 1)
        text = text.replace("{u}", "-".join(m.some(HEX, n) for n in (8, 4, 4, 4, 12)))
        return text.replace("{{", "{").replace("}}", "}")

    return [filled(text) for text in HARMLESS for _ in range(16)]
