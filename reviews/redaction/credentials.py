"""Recognises credentials: keys, passwords and tokens."""

from __future__ import annotations

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
    | whsec_[A-Za-z0-9+/=]{16,}+ | hp[a-z]?_[A-Za-z0-9]{4,}+_[\w-]{16,}+
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
    r"[Bb](?<!\w[Bb])(?i:earer|asic)[ \t]{1,3}([A-Za-z0-9._~+/-]{8,}+={0,2})"
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
_OPTION = re.compile(
    r"(?<![\w-])--?(?:password|passwd|pass|passphrase|pwd|token|access-token|api-?key"
    r"|secret|client-secret|secret-key|auth-token|requirepass)(?:=|[ ]{1,2})"
    r"(?:\"([^\"\n\0]{1,200})\"|'([^'\n\0]{1,200})'|([^\s\"'\0-][^\s\"'\0]{2,200}))",
    re.IGNORECASE,
)
_USER_OPTION = re.compile(
    r"\b(?:curl|wget|http|https|xh|ab|httpie)\b[^\n\0]{0,80}?[ ](?:-u|--user|-a|--auth)"
    r"[ =]?[\"']?[^\s:\"'\0]{1,64}:([^\s\"'\0]{1,128})"
)
_SHORT_OPTION = re.compile(
    r"\b(?:mysql|mysqldump|mysqladmin|mariadb|mariadb-dump)\b[^\n\0]{0,60}?[ ]-p"
    r"[\"']?([^\s\"'\0-][^\s\"'\0]{2,128})"
    r"|\b(?:sshpass|docker login|podman login|mongosh?|mongodump|az login|sqlcmd)\b"
    r"[^\n\0]{0,60}?[ ]-[pP][ ]?[\"']?([^\s\"'\0-][^\s\"'\0]{2,128})"
    r"|\b(?:redis-cli|valkey-cli)\b[^\n\0]{0,60}?[ ]-a[ ][\"']?([^\s\"'\0]{3,128})"
    r"|\bldap(?:search|modify|add)\b[^\n\0]{0,60}?[ ]-w[ ][\"']?([^\s\"'\0]{3,128})"
)
_VARIABLE = re.compile(
    r"(?<![A-Za-z0-9])(?:[A-Z0-9]{1,24}_){0,4}"
    r"(?:PGPASSWORD|MYSQL_PWD|REDISCLI_AUTH|SSHPASS|PASS|AUTH|KEY|CREDENTIALS)="
    r"[\"']?([^\s\"'\0;]{8,200})"
)
_COMMAND_SIGN = re.compile(r"[ ]--?[A-Za-z]|[A-Z]=")
_COMMANDS = (_OPTION, _USER_OPTION, _SHORT_OPTION, _VARIABLE)
_SIMPLE_PATTERNS = (
    (_STORAGE_KEY, SECRET),
    (_WALLET_KEY, SECRET),
    (_SEED_PHRASE, SECRET),
    (_JWT, TOKEN),
    (_GRANT, TOKEN),
    (_IN_URL, SECRET),
    (_PARAMETER, TOKEN),
)

_OPENERS = (
    r"pass(?:word|wd|phrase|code)|pwd|(?:client|api|app|shared)?secret"
    r"(?:[ _-]?(?:access[ _-]?)?key)?|(?:api|access|private|signing|encryption)"
    r"[ _-]?key|pin(?:[ _-]?(?:code|number))?|cvv2?|cvc2?|security[ _-]?code"
    r"|otp|(?:one[ _-]?time|verification|2fa|mfa)[ _-]?(?:pass)?code"
    r"|pa(?:ss|\u00df)wort|kennwort|losungswort|zugangscode|geheimzahl"
    r"|mot[ _-]de[ _-]passe|mdp|code[ _-](?:secret|confidentiel)|cl(?:e|\u00e9)[ _-]"
    r"(?:api|secr(?:e|\u00e8)te|d'acc(?:e|\u00e8)s|priv(?:e|\u00e9)e)"
    r"|contrase(?:n|\u00f1)a|clave(?:[ _-](?:api|secreta|privada|de[ _-]acceso))?"
    r"|senha|wachtwoord|parola d'ordine"
)
_BEARERS = (
    r"(?:access|refresh|auth|id|bearer|session|csrf|api)?token"
    r"|session[ _-]?id|(?:set-)?cookie|authorization"
)
# After an opening quote, which the separator has consumed, up to the closing one.
_QUOTED = r"(?<=\")([^\"\n\0]{1,200}?)(?=\\?\")|(?<=')([^'\n\0]{1,200}?)(?=')"
_BARE = r"([^\s\"'`,;<>()\[\]{}\0]{3,256})"
_LABELLED = re.compile(
    r"(?<![A-Za-z0-9])(?=[2abcegikklmoprstuvwz])"
    rf"(?:(?P<secret>{_OPENERS})|(?P<token>{_BEARERS}))"
    rf"(?:{SEPARATOR}|[ \t]{{1,2}}(?P<told>is|was|ist|lautet|est|es|era|\u00e8|\u00e9)"
    rf"(?: now| jetzt)?[ \t]{{1,2}}[\"'`]?)"
    rf"(?:{_QUOTED}|{_BARE})",
    re.IGNORECASE,
)
_NOT_A_VALUE = re.compile(
    r"null|none|nil|true|false|undefined|yes|not|n/a|redacted|required|optional|string"
    r"|bearer|basic",
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
    for match in _AUTHORIZATION.finditer(view):
        if _is_random_looking(match[1]):
            yield Span(*match.span(1), TOKEN, match[1])
    yield from _find_labelled_secrets(view)
    if _COMMAND_SIGN.search(view):
        yield from _find_command_secrets(view)


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
    for match in _LABELLED.finditer(view):
        group = next(n for n in (4, 5, 6) if match[n])
        value = match[group].rstrip(".!?:*_`\\") or match[group]
        if _NOT_A_VALUE.fullmatch(value):
            continue
        if match["told"] and not _is_random_looking(value):
            continue  # "the password is wrong"
        start = match.start(group)
        kind = SECRET if match["secret"] else TOKEN
        yield Span(start, start + len(value), kind, value)


def _is_random_looking(value: str) -> bool:
    """Whether it does not look like a word of a sentence."""
    return not value.isalpha() or len(value) >= 24
