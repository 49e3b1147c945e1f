"""Each family of secrets and personal data, as people and tools write it."""

from __future__ import annotations

import pytest

from tests.processor_time import costs_less
from tests.reviews.redaction.test_redactor import CHIP, kinds, redact, tags

# A card's number in groups, with what stands between them.
BETWEEN = [
    *(" ", "-", ".", "_", "/", ",", ":", "+", "=", "~", "'", "#", "\t", " \u00b7 "),
    *"\u00b7\u2022\u2027\u2219\u22c5\u30fb\u25cf\u25aa\u2024\uff0e\u00a0\u2007\u202f\u3000\u2800",
    *"\u2010\u2011\u2012\u2013\u2014\u2043\u2212\u2500\u30fc\uff0d\u00ad",
    *(" \u2013 ", " \u2022 "),
]
LABELS = {  # languages: words for a password, a PIN, a card's code, a card's number
    "en": ("password", "PIN", "security code", "card number"),
    "de": ("Passwort", "PIN", "Kartenprüfnummer", "Kartennummer"),
    "fr": ("mot de passe", "code PIN", "code de sécurité", "numéro de carte"),
    "es": ("contraseña", "código PIN", "código de seguridad", "número de tarjeta"),
    "pt": ("palavra-passe", "PIN", "código de segurança", "número do cartão"),
    "nl": ("wachtwoord", "pincode", "beveiligingscode", "kaartnummer"),
    "it": ("parola d'ordine", "codice PIN", "codice di sicurezza", "numero di carta"),
    "pl": ("hasło", "kod PIN", "kod CVV", "numer karty"),
    "sv": ("lösenord", "PIN-kod", "säkerhetskod", "kortnummer"),
    "da": ("adgangskode", "pinkode", "sikkerhedskode", "kortnummer"),
    "no": ("passord", "PIN", "sikkerhetskode", "kortnummer"),
    "fi": ("salasana", "tunnusluku", "turvakoodi", "card"),
    "cs": ("heslo", "PIN", "CVV", "karta"),
    "ru": ("пароль", "пин-код", "код безопасности", "номер карты"),
    "zh": ("密码", "PIN", "安全码", "卡号"),
    "zh-Hant": ("密碼", "PIN", "驗證碼", "信用卡号"),
    "ja": ("パスワード", "暗証番号", "セキュリティコード", "カード番号"),
    "ko": ("비밀번호", "PIN", "보안코드", "카드 번호"),
}
TAKEN = [
    # kind, the secret part, the text around it: HTTP's schemes
    *(
        ("token", value, f"Authorization: {scheme} {{}}")
        for scheme, value in (
            *(("Basic", "dXNlcjpwYXNz"), ("basic", "YTpi"), ("Bearer", "x1y2z3a4")),
            *(("Token", "abcdef1"), ("ApiKey", "k1k2k3"), ("Negotiate", "YIIabc")),
            *(("NTLM", "TlRMTVNTUAAB"), ("DPoP", "Kz~8mXK1EalYznwH"), ("Key", "a1b2")),
            *(("OAuth", 'oauth_token="kkk9hh5"'), ("Hawk", 'id="dh37", mac="6R4r="')),
            ("Digest", 'username="bob", response="6629fae49393a05"'),
            ("AWS4-HMAC-SHA256", "Credential=AKIA/20/us, Signature=fe5f80f77d5fa3"),
        )
    ),
    ("token", "YTpi", "Basic {}"),
    ("token", "YWxhZGRpbjpvcGVu", "Proxy-Authorization: Basic {}"),
    # options of commands
    ("secret", "x", "openssl x509 -passin pass:{} -in k.pem"),
    ("secret", "hunter2", "openssl rsa -passout pass:{}"),
    ("secret", "s3c", "openssl enc -aes-256-cbc -k {}"),
    ("secret", "pw1", "curl -u bob:{} https://x.example"),
    ("secret", "pw1", "curl -U bob:{} https://x.example"),
    ("secret", "abc1", "curl --oauth2-bearer {} https://x.example"),
    ("secret", "x", "mysql -uroot -p{} shop"),
    ("secret", "x", "mysqldump --password={} shop"),
    ("secret", "x", "PGPASSWORD={} psql shop"),
    ("secret", "a b", "export DB_PASSWORD='{}'"),
    ("secret", "x", "sshpass -p {} ssh host"),
    ("secret", "x", "SSHPASS={} sshpass -e ssh host"),
    ("secret", "abcd", "aws configure set aws_secret_access_key {}"),
    ("secret", "abc9", "aws x --secret-access-key {}"),
    ("secret", "s", "docker login -u a --password {}"),
    ("secret", "s", "docker login -u a -p {}"),
    ("secret", "s1", "docker run -e POSTGRES_PASSWORD={} postgres"),
    ("secret", "p1", "kubectl create secret docker-registry r --docker-password {}"),
    ("secret", "p12", "kubectl create secret generic r --from-literal=password={}"),
    ("secret", "x", "redis-cli -a {} ping"),
    ("secret", "x", "ldapsearch -D cn=a -w {} -b dc=x"),
    ("secret", "pw9", "smbclient //h/s -U bob%{}"),
    ("secret", "tiger", "sqlplus scott/{}@db"),
    ("secret", "pw9", "zip -P {} a.zip b"),
    ("secret", "pw9", "htpasswd -b users bob {}"),
    # connection strings
    ("secret", "x", "Server=db;Uid=sa;Pwd={};Database=y"),
    ("secret", "x", "postgres://bob:{}@db.example/y"),
    ("secret", "x", "mongodb+srv://bob:{}@db.example"),
    ("secret", "x", "redis://:{}@db.example"),
    ("secret", "x1y", "host=db user=a password={} dbname=y"),
    # ids joined with their label
    *(
        ("national id", number, f"{label}{{}}")
        for label, number in (
            *(("SSN", "078051120"), ("ssn-", "078051120"), ("SSN_", "078051120")),
            *(("SSN#", "078-05-1120"), ("BSN", "111222333"), ("PESEL", "44051401359")),
            *(("passport", "X1234567"), ("DNI", "12345678Z"), ("CPF", "52998224725")),
            *(("NINO", "AB123456C"), ("steuerid", "86095742719")),
        )
    ),
    # short values, and figures without a sign before them
    ("secret", "x", "pw: {}"),
    ("secret", "hunter2", "pw: {}"),
    ("secret", "ab", "pwd={}"),
    ("secret", "x", "Password: {}."),
    ("secret", "qwe123", "Password - {}"),
    ("secret", "qwe123", "Пароль - {}"),
    ("secret", "qwe123", "密码是{}"),
    ("secret", "123", "cvv {}"),
    ("secret", "123", "CVC2 {}"),
    ("secret", "1234", "PIN {}"),
    ("secret", "4821", "暗証番号 {}"),
    # addresses with a spelt sign
    *(
        ("e-mail", address, "Write to {}, please.")
        for address in (
            *("john.doe at example.com", "jane_roe42 at mail.example.org"),
            *("john dot doe at example dot com", "john.doe [at] example.com"),
            *("john.doe AT example.com", "john.doe (at) example (dot) com"),
            *("john.doe at example dot com", "john małpa example kropka pl"),
        )
    ),
    ("e-mail", "john at example.com", "e-mail: {}"),
]


@pytest.mark.parametrize(("kind", "value", "around"), TAKEN)
def test_each_form_of_a_family_is_taken_out(kind, value, around):
    assert kinds(around.format(value)) == [kind]
    shown = redact(around.format(value))
    before, after = around.format("\0").split("\0")
    assert shown.startswith(before)
    assert shown.endswith(after)
    assert CHIP.fullmatch(shown[len(before) : len(shown) - len(after)])


@pytest.mark.parametrize("language", LABELS)
def test_labels_are_known_in_every_language(language):
    password, pin, code, card = LABELS[language]
    for sign in (": ", "\uff1a", " = "):
        assert kinds(f"{password}{sign}gH7kw2") == ["secret"]
        assert kinds(f"{password.upper()}{sign}gH7kw2") == ["secret"]
        assert kinds(f"{pin}{sign}4821") == ["secret"]
        assert kinds(f"{code}{sign}937") == ["secret"]
        assert kinds(f"{card}{sign}1234 5678 9012 3456") == ["card"]


@pytest.mark.parametrize("sign", BETWEEN)
def test_a_card_is_found_over_any_sign_between_its_groups(sign):
    text = sign.join(["4111", "1111", "1111", "1111"])
    assert kinds(text) == ["card"]
    assert tags(text) == tags("4111111111111111")


@pytest.mark.parametrize(
    "text",
    [
        "The Authorization: Basic scheme is old; Authorization: Bearer is required.",
        "Basic training and a bearer token are needed. Basic YTpi1 is no pair.",
        "look at example.com, meet me at amazon.com, sales at example.com",
        "Read index.html at example.com and node.js at example.com, or v2.0 at x.com",
        "password - 12 characters or more; token - 2024-05-15; pin to 4.17.21",
        "PIN 12 of the connector, CSC 101, CVV is required, PIN 4.17 and PIN 1234-5",
        "SSN is required; the passport follows; nie wiem; dni robocze",
        "4·3·2 and 10 · 20 · 30 · 40, 3ー4, écrivain·es",
        "mkdir -p a/b, docker run -p 8080:80 nginx, cp -p a b, tar -k x, zip -r a b",
        "Пароль неверный. 密码错误。パスワードが違います。番号 1234, hasło jest złe",
        "carta: 12 euro; karta 3; card: Visa; kort: 4 dagar; 卡号错误",
        "--token-limit 5 --password-file x TOKEN_LIMIT=5 KEY=value",
        "openssl rsa -passin env:PW -passin file:/run/secrets/pw",
        "PGPASSWORD=$PW psql; curl -u $USER:$PW https://x.example",
    ],
)
def test_what_only_resembles_a_family_stays(text):
    assert redact(text) == text


@pytest.mark.parametrize(
    "piece",
    [
        *("пароль ", "пароль - ", "密码是", "a.b at c.", "e-mail: a at b", "-a-b-"),
        *("-passin pass:", "a dot b ", 'authorization: digest a="', "Basic YTpi "),
        *("SSN1 ", "SSN0", "card: 1", "1 · ", "1ー", "cvv 1", "A_PASSWORD='", "-U a:"),
        *("sqlplus a/", "htpasswd -b a ", "openssl -k ", "net -U a%", "pw: ", "a_b_"),
    ],
)
def test_the_families_cost_linear_time(piece):
    size = 65_000
    text = (piece * size)[:size] + "a"
    assert costs_less(lambda: redact(text), seconds=2)
