"""Recognises credentials: keys, passwords and tokens."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator

from .spans import SECRET, SEPARATOR, TOKEN, Span

_KEY_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_BODY = re.compile(r"[A-Za-z0-9+/=\s]*+")

# Prefixes by which issuers let scanners recognise their keys.
_PREFIXED = re.compile(
    r"""(?:
      sk-[A-Za-z0-9_-]{16,}+                          # OpenAI, Anthropic and others
    | [srp]k_(?:live|test)_[A-Za-z0-9]{10,}+          # Stripe
    | gh[pousr]_[A-Za-z0-9]{20,}+ | github_pat_\w{20,}+
    | gl(?:pat|ptt|dt|rt)-[\w-]{16,}+                 # GitLab
    | (?:AKIA|ASIA|AROA|AIDA)[0-9A-Z]{16}             # AWS
    | xox[abeoprs]-[A-Za-z0-9-]{10,}+ | xapp-[A-Za-z0-9-]{10,}+  # Slack
    | AIza[\w-]{35} | ya29\.[\w-]{20,}+ | GOCSPX-[\w-]{20,}+     # Google
    | SG\.[\w-]{16,}+\.[\w-]{16,}+                    # SendGrid
    | npm_[A-Za-z0-9]{30,}+ | pypi-[\w-]{16,}+ | hf_[A-Za-z0-9]{24,}+
    | do[opr]_v1_[a-f0-9]{32,}+ | shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}
    | (?:AC|SK)[0-9a-f]{32} | key-[0-9a-f]{32}        # Twilio, Mailgun
    | sq0(?:atp|csp)-[\w-]{20,}+ | EAAA[\w-]{50,}+    # Square
    | whsec_[A-Za-z0-9+/=]{16,}+ | cs[a-z]?_[A-Za-z0-9]{4,}+_[\w-]{16,}+
    | https://hooks\.slack\.com/services/[\w/]{20,}+
    | dapi[a-f0-9]{32} | lin_(?:api|oauth)_[A-Za-z0-9]{24,}+     # Databricks, Linear
    | [MNO][A-Za-z0-9_-]{23,27}\.[\w-]{6}\.[\w-]{27,}+         # Discord
    | https://(?:canary\.|ptb\.)?discord(?:app)?\.com/api/webhooks/\d+/[\w-]{40,}+
    | \d{8,10}:AA[A-Za-z0-9_-]{33}                              # Telegram
    | AGE-SECRET-KEY-1[0-9A-Z]{50,}+
    | glsa_\w{30,}+ | hv[sb]\.[\w-]{24,}+ | dckr_pat_[\w-]{20,}+  # Grafana, Vault
    | xkeysib-[a-f0-9]{40,}+ | PMAK-[a-f0-9-]{30,}+ | NRAK-[A-Z0-9]{27}
    | ATATT3[\w=-]{40,}+ | figd_[\w-]{30,}+ | ntn_\w{30,}+ | sbp_[a-f0-9]{40}
    | gsk_\w{40,}+ | xai-\w{40,}+ | pplx-\w{40,}+ | r8_\w{30,}+
    )""",
    re.VERBOSE,
)
_SHORTEST_KEY = 15  # characters: xoxb- and ten more
# A pattern that begins with a rare literal is searched fast, so the look-behind for the
# preceding character comes after that literal.
_JWT = re.compile(r"eyJ(?<![\w-]eyJ)[\w-]{8,}+\.[\w-]{8,}+(?:\.[\w-]*+)?")
_GRANT = re.compile(r"g-(?<![\w-]g-)[0-9a-z]{20}\.[\w-]{16,}+")
_AUTHORIZATION = re.compile(
    r"[Bb](?<!\w[Bb])(?i:earer|asic)[ \t]{1,3}([A-Za-z0-9._~+/-]{4,}+={0,2})"
)
# The schemes of HTTP's registry, and those of wide use beside it. After the scheme come
# a token or members such as `username="bob", response="..."`.
_SCHEMES = (
    r"basic|bearer|concealed|digest|dpop|gnap|hoba|mutual|negotiate|ntlm|oauth|hawk"
    r"|privatetoken|scram-sha-\d+|vapid|token|api-?key|bot|jwt|key|ssws|splunk|hmac"
    r"|aws4-hmac-sha256|shared(?:key|accesssignature)(?:lite)?|googlelogin|signature"
)
_HEADER = re.compile(
    r"authorization[\"']{0,2}[ \t]{0,2}[:=][ \t\"']{0,3}(?P<scheme>"
    rf"{_SCHEMES})[ \t]{{1,3}}"
    r"((?:[\w-]{1,40}=(?:\\?\"[^\"\n\0]{0,300}\"|[^\s,\"'\0]{1,300})[ ]{0,2},?"
    r"[ ]{0,2}){1,12}"
    r"|[^\s\"'<>{}\0]{2,}+)",
    re.IGNORECASE,
)
_IN_URL = re.compile(r"://[^\s/@:\0]{0,128}:([^\s/@\0]{1,256})@")
_PARAMETER = re.compile(
    r"[?&;](?:access_token|refresh_token|id_token|auth_token|token|api_?key|apikey"
    r"|key|sig|signature|secret|password|code|session|sessionid)=([^\s&#;\"'<>\0]{6,}+)",
    re.IGNORECASE,
)
_STORAGE_KEY = re.compile(
    r"(?:Account|SharedAccess|Shared|Primary|Secondary)Key=([A-Za-z0-9+/]{24,}+={0,2})"
)
# 64 hex digits may also be a transaction id, so a word for a key must precede them.
_WALLET_KEY = re.compile(
    r"(?:priv(?:ate)?|secret|signer|signing|wallet|deployer)[ _-]?(?:key|pk)?"
    r"[^\n\0]{0,24}?((?<![\w])0x[0-9a-f]{64}(?![\w]))",
    re.IGNORECASE,
)
_SEED_PHRASE = re.compile(
    r"(?:seed|recovery|mnemonic|backup)(?:[ -](?:phrase|words|seed|code))?"
    r"(?:[ ](?:is|was))?[\s\"'*_`:=-]{1,6}"
    r"((?:[a-z]{3,8}[ ,\n]{1,2}){11,23}[a-z]{3,8})\b",
    re.IGNORECASE,
)
# ---- command lines
_SHELL_VALUE = (
    r"(?:\"([^\"\n\0]{1,200})\"|'([^'\n\0]{1,200})'"
    r"|([^\s\"'\0-][^\s\"'\0]{0,200}))"
)
_OPTION = re.compile(
    r"(?<![\w-])--?(?:[a-z0-9]{1,20}[-_.]){0,3}(?:password|passwd|pass|passphrase|pwd"
    r"|token|api-?key|secret|secret-key|secret-access-key|requirepass|oauth2-bearer"
    rf"|srppass)(?:=|[ ]{{1,2}}){_SHELL_VALUE}",
    re.IGNORECASE,
)
# openssl: `-passin pass:x`; `env:` and `file:` name where the password is.
_OPENSSL = re.compile(
    rf"-(?:pass(?:in|out|word)?|k)[ =]{{1,2}}[\"']?pass:{_SHELL_VALUE}"
)
_AWS_SETTING = re.compile(
    rf"\baws_(?:secret_access_key|session_token)[ ]{{1,2}}{_SHELL_VALUE}"
)
_USER_OPTION = re.compile(
    r"\b(?:curl|wget|http|https|xh|ab|httpie)\b[^\n\0]{0,80}?[ ]"
    r"(?:-[uUa]|--user|--auth|--proxy-user)[ =]?[\"']?[^\s:\"'\0]{1,64}"
    r":([^\s\"'\0]{1,128})"
    r"|\b(?:smbclient|rpcclient|net|mount\.cifs)\b[^\n\0]{0,80}?[ ](?:-U|--user)[ =]?"
    r"[\"']?[^\s%\"'\0]{1,64}%([^\s\"'\0]{1,128})"
    r"|\blftp\b[^\n\0]{0,80}?[ ]-u[ ]?[\"']?[^\s,\"'\0]{1,64},([^\s\"'\0]{1,128})"
    r"|\bsqlplus\b[^\n\0]{0,40}?[ ][\"']?\w{1,64}/([^\s@/\"'\0]{1,128})@"
)
_SHORT_OPTION = re.compile(
    r"\b(?:mysql|mysqldump|mysqladmin|mariadb|mariadb-dump|7z|7za)\b[^\n\0]{0,60}?[ ]-p"
    r"[\"']?([^\s\"'\0-][^\s\"'\0]{0,128})"
    r"|\b(?:sshpass|docker login|podman login|mongosh?|mongodump|mongorestore|az login"
    r"|sqlcmd|cqlsh|rdesktop|clickhouse-client|helm registry login)\b"
    r"[^\n\0]{0,60}?[ ]-[pP][ ]?[\"']?([^\s\"'\0-][^\s\"'\0]{0,128})"
    r"|\b(?:zip|unzip)\b[^\n\0]{0,60}?[ ]-P[ ]?[\"']?([^\s\"'\0-][^\s\"'\0]{0,128})"
    r"|\b(?:redis-cli|valkey-cli)\b[^\n\0]{0,60}?[ ]-a[ ][\"']?([^\s\"'\0]{1,128})"
    r"|\bldap(?:search|modify|add|delete|passwd)\b[^\n\0]{0,60}?[ ]-w[ ][\"']?"
    r"([^\s\"'\0]{1,128})"
    r"|\bopenssl\b[^\n\0]{0,80}?[ ]-[kK][ ][\"']?([^\s\"'\0-][^\s\"'\0]{0,128})"
    r"|\bhtpasswd\b[^\n\0]{0,40}?[ ]-\w*b\w*[ ]\S{1,80}[ ]\S{1,64}[ ]([^\s\0]{1,128})"
    r"|\bxfreerdp\b[^\n\0]{0,80}?[ ]/p:([^\s\0]{1,128})"
    r"|\bvault login[ ]([^\s\0-][^\s\0]{1,128})"
)
_VARIABLE = re.compile(
    r"(?<![A-Za-z0-9])(?:[A-Z0-9]{1,24}_){0,4}"
    r"(?:(?:PGPASSWORD|MYSQL_PWD|REDISCLI_AUTH|SSHPASS|PASSWORD|PASSWD|PWD|PASSPHRASE"
    r"|SECRET)=(?:\"([^\"\n\0]{1,200})\"|'([^'\n\0]{1,200})'|([^\s\"'\0;&|]{1,200}))"
    r"|(?:PASS|AUTH|KEY|CREDENTIALS|TOKEN)=[\"']?([^\s\"'\0;]{8,200}))"
)
_COMMAND_SIGN = re.compile(r"[ ]--?[A-Za-z0-9]|[A-Z]=|aws_|sqlplus|vault|xfreerdp")
_COMMANDS = (
    *(_OPENSSL, _OPTION, _USER_OPTION, _SHORT_OPTION, _VARIABLE, _AWS_SETTING),
)
_SIMPLE_PATTERNS = (
    (_STORAGE_KEY, SECRET),
    (_WALLET_KEY, SECRET),
    (_SEED_PHRASE, SECRET),
    (_JWT, TOKEN),
    (_GRANT, TOKEN),
    (_IN_URL, SECRET),
    (_PARAMETER, TOKEN),
)

# Words for a password, a PIN or a card's code, one language a line.
_OPENERS = (
    r"pass(?:word|wd|phrase|code)|pwd|pswd|psw|pw|(?:client|api|app|shared)?secret"
    r"(?:[ _-]?(?:access[ _-]?)?key)?|(?:api|access|private|signing|encryption)"
    r"[ _-]?key|pin(?:[ _-]?(?:code|number))?|(?:cvv|cvc|cvn|csc)2?"
    r"(?:[ _-]?(?:code|number))?|security[ _-]?code"
    r"|otp|(?:one[ _-]?time|verification|2fa|mfa)[ _-]?(?:pass)?code"
    r"|(?:pa(?:ss|ß)|kenn|losungs)wort|(?:zugangs|sicherheits)code|geheimzahl"
    r"|(?:karten)?pr(?:ü|ue)f(?:nummer|ziffer)"  # de
    r"|mot[ _-]de[ _-]passe|mdp|code[ _-](?:pin|secret|confidentiel|de[ _-]s(?:e|é)"
    r"curit(?:e|é))|cryptogramme|cl(?:e|é)[ _-]"
    r"(?:api|secr(?:e|è)te|d'acc(?:e|è)s|priv(?:e|é)e)"  # fr
    r"|contrase(?:n|ñ)a|clave(?:[ _-](?:api|secreta|privada|de[ _-]acceso))?"
    r"|c(?:o|ó)digo[ _-](?:pin|secreto|cvv|de[ _-](?:seguridad|seguran(?:c|ç)a))"
    r"|senha|palavra[ _-]passe|palavra[ _-]chave"  # es, pt
    r"|wachtwoord|(?:pin|toegangs|beveiligings)code"  # nl
    r"|parola(?:[ _-](?:d'ordine|chiave))?"  # it, ro, tr
    r"|codice[ _-](?:pin|segreto|cvv|di[ _-](?:sicurezza|accesso))"  # it
    r"|has(?:l|ł)o|kod[ _-](?:pin|cvv|cvc|zabezpieczaj(?:a|ą)cy|dost(?:e|ę)pu)"
    r"|l(?:o|ö)senord|(?:pin-?|s(?:a|ä)kerhets)kode?|adgangskode|kodeord"
    r"|sikkerhe[dt]skode|passord|salasana|tunnusluku|turvakoodi"  # pl, sv, da, no, fi
    r"|heslo|jelsz(?:o|ó)|(?:ş|s)ifre|g(?:u|ü)venlik[ _-]kodu"  # cs, hu, tr
    r"|пароль|пин(?:[ _-]?код)?"
    r"|код[ _-](?:безопасности|доступа|безпеки|cvv|cvc|pin)"  # ru, uk
    r"|κωδικ(?:\u03cc|\u03bf)ς"  # el
    r"|סיסמה|كلمة[ ](?:المرور|السر)"
    r"|密[码碼]|口令|(?:安全|验证|驗證|校验|cvv)[码碼]"  # zh
    r"|(?:パスワード|暗証番号|セキュリティ(?:ー)?コード|合言葉)"
    r"|비밀번호|암호|보안[ ]?코드"  # ja, ko
)
_BEARERS = (
    r"(?:access|refresh|auth|id|bearer|session|csrf|api)?token"
    r"|session[ _-]?id|(?:set-)?cookie|authorization"
)
# After an opening quote, which the separator has consumed, up to the closing one.
_QUOTED = r"(?<=\")([^\"\n\0]{1,200}?)(?=\\?\")|(?<=')([^'\n\0]{1,200}?)(?=')"
_BARE = r"([^\s\"'`,;<>()\[\]{}\0]{1,256})"
_VERB = (
    r"[ \t]{1,2}(?:is|was|ist|lautet|est|es|era|è|é|jest|brzmi|är"
    r"|это|\u2014|-{1,2})(?: now| jetzt)?[ \t]{1,2}"
    r"|[ \t]{0,2}[是为為は][ \t、]{0,2}"
)
_LABELLED = re.compile(
    r"(?<![A-Za-z0-9])(?=[2abceghijklmoprstuvwz]|(?-i:[^\x00-\x7f]))"
    rf"(?:(?P<secret>{_OPENERS})|(?P<token>{_BEARERS}))"
    rf"(?:{SEPARATOR}|(?P<verb>{_VERB})[\"'`]?)"
    rf"(?:{_QUOTED}|{_BARE})",
    re.IGNORECASE,
)
# `cvv 123`, `PIN 1234`: figures need no sign after such a word.
_CODE = re.compile(
    r"(?<![A-Za-z0-9])(?:(?i:(?:cvv|cvc)2?|security code|cryptogramme"
    r"|(?:karten)?prüf(?:nummer|ziffer)|sicherheitscode|beveiligingscode"
    r"|código de seguridad|codice di sicurezza|säkerhetskod|kod cvv"
    r"|код безопасности)[ \t]{0,2}(?:\#[ ]?)?(\d{3,4})"
    r"|(?:PIN(?:[ -]?(?i:code|kod|kode))?|(?i:пин(?:-код)?|geheimzahl|pincode|pin code"
    r"|tunnusluku|暗証番号))[ \t]{0,2}(\d{4,8}))(?![\w]|[.,-]\d)"
)
_SHORT_LABEL = re.compile(r"pw|pwd|psw|pswd|pass(?:word|wd)?", re.IGNORECASE)
_VALUE_END = re.compile(r"[.!?]?[\"'`]?[ \t]{0,2}(?:[\n,;)]|\Z)")
_SHORTEST_VALUE = 3  # characters, but for a password that ends its line or sentence
_NOT_A_VALUE = re.compile(
    r"null|none|nil|true|false|undefined|yes|not|n/a|redacted|required|optional|string"
    rf"|{_SCHEMES}",
    re.IGNORECASE,
)


def find_credentials(view: str) -> Iterator[Span]:
    """Private keys, keys with known prefixes, tokens, passwords in URLs and command
    lines, and labelled secrets."""
    if "PRIVATE KEY" in view:
        yield from _find_private_keys(view)
    if len(view) >= _SHORTEST_KEY:
        yield from _find_prefixed_keys(view)
    for pattern, kind in _SIMPLE_PATTERNS:
        for match in pattern.finditer(view):
            value = match.lastindex or 0
            yield Span(*match.span(value), kind, match[value])
    yield from _find_http_credentials(view)
    yield from _find_labelled_secrets(view)
    if _COMMAND_SIGN.search(view):
        yield from _find_command_secrets(view)


def _find_http_credentials(view: str) -> Iterator[Span]:
    """What follows the name of a scheme: `Basic dXNlcjpwYXNz`."""
    for match in _AUTHORIZATION.finditer(view):
        long = len(match[1]) >= 8
        if (long and _is_random_looking(match[1])) or _is_basic(match[1]):
            yield Span(*match.span(1), TOKEN, match[1])
    for match in _HEADER.finditer(view) if "uthorization" in view.lower() else ():
        if not _is_plain_word(match[2]):
            yield Span(*match.span(2), TOKEN, match[2])


def _find_prefixed_keys(view: str) -> Iterator[Span]:
    for match in _PREFIXED.finditer(view):
        if not view[match.start() - 1 : match.start()].isalnum():
            yield Span(*match.span(), SECRET, match.group())


def _find_command_secrets(view: str) -> Iterator[Span]:
    """Secrets in a command line. `$PASSWORD` names a variable and is not a secret."""
    for pattern in _COMMANDS:
        for match in pattern.finditer(view):
            value = match[match.lastindex or 0]
            if not _NOT_A_VALUE.fullmatch(value) and value[0] not in "$<%{":
                yield Span(*match.span(match.lastindex or 0), SECRET, value)


def _find_private_keys(view: str) -> Iterator[Span]:
    position = 0
    ends = True
    while begin := _KEY_BEGIN.search(view, position):
        end = _KEY_END.search(view, begin.end()) if ends else None
        ends = end is not None  # else each beginning would scan the rest of the text
        stop = end or _KEY_BODY.match(view, begin.end())
        position = stop.end() if stop else begin.end()
        yield Span(begin.start(), position, SECRET, view[begin.start() : position])


def _find_labelled_secrets(view: str) -> Iterator[Span]:
    for match in _CODE.finditer(view):
        group = match.lastindex or 0
        yield Span(*match.span(group), SECRET, match[group])
    for match in _LABELLED.finditer(view):
        group = next(n for n in (4, 5, 6) if match[n])
        value = match[group].rstrip(".!?:*_`\\") or match[group]
        if _NOT_A_VALUE.fullmatch(value) or _is_too_short(match, value, view):
            continue
        if match["verb"] and not _is_random_looking(value, match["verb"]):
            continue  # "the password is wrong"
        start = match.start(group)
        kind = SECRET if match["secret"] else TOKEN
        yield Span(start, start + len(value), kind, value)


def _is_too_short(match: re.Match[str], value: str, view: str) -> bool:
    if len(value) >= _SHORTEST_VALUE:
        return False
    plain = _SHORT_LABEL.fullmatch(match["secret"] or "") and not match["verb"]
    after = match.end() - (len(match[6]) - len(value) if match[6] else 0)
    return not (plain and value.isalnum() and _VALUE_END.match(view, after))


def _is_basic(value: str) -> bool:
    """Whether it is a user and a password in the form of HTTP's scheme Basic."""
    try:
        text = base64.b64decode(value, validate=True).decode()
    except ValueError:
        return False
    return ":" in text and text.isprintable()


def _is_plain_word(value: str) -> bool:
    """Whether it is a word of a sentence: `Authorization: Basic scheme`."""
    cases = (value.islower(), value.isupper(), value.istitle())
    return value.isalpha() and any(cases) and len(value) < 16 and not _is_basic(value)


def _is_random_looking(value: str, verb: str = "") -> bool:
    """Whether it does not look like a word of a sentence, nor like a figure after a
    dash."""
    after_dash = bool(verb) and not verb.strip(" \t-\u2014")
    if after_dash and not any(char.isalpha() for char in value):
        return False
    return not value.isalpha() or len(value) >= 24
