"""Phrases in agent text that speak to the reviewer: marked, never removed (ux.md 3.5).

A sign for the eye, not a filter: it may miss, and what it marks is still shown.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence

from .codepoints import is_hidden
from .scripts import skeleton

_DONE = r"(?:approved|authori[sz]ed|cleared|confirmed|reviewed|verified|signed off)"
_WHO = r"(?:reviewer|approver|supervisor|operator|administrator|admin|moderator|human)"
_BOSS = (
    rf"(?:{_WHO}s?|manager|management|compliance|legal|security|finance|boss|ceo|cfo"
    r"|director|policy|system|gateway|holdpoint)"
)
_DO = r"(?:approve|accept|confirm|authori[sz]e|allow|sign off)"
_PHRASES = (
    rf"(?:already|pre) ?{_DONE}",
    r"(?:been|was|were|is|are) (?:approved|authori[sz]ed|cleared|signed off)",
    rf"{_DONE} (?:already )?by (?:the |a |your |our |its )?{_BOSS}",
    rf"{_BOSS} (?:has|have|had|already)(?: already| been)? (?:{_DONE}|agreed|asked)",
    r"safe to (?:approve|accept|proceed|sign|run|execute|ignore|skip)",
    rf"as (?:the |your |a )?(?:{_WHO}|you) (?:has |have |had )?"
    r"(?:requested|asked|agreed|confirmed|approved|said|instructed|told|wanted)",
    r"(?:click|press|hit|tap|choose|select|push) (?:on )?(?:the )?"
    r"(?:approve|accept|confirm|ok|allow|yes|commit|a\b)",
    rf"{_DO} (?:this|it|now|immediately|at once|without|asap|right away|quickly)",
    rf"(?:please|just|simply|must|should|can|may|to) (?:safely )?{_DO}\b",
    r"(?:no|without|skip|skipping) "
    r"(?:any |the |further |additional |more |need for |need to )*"
    r"(?:review|checks?|checking|approval|verification|confirmation|inspect)",
    r"(?:does|do|did|need) ?n[o']t (?:need|require|have to|be)"
    r"(?: to)?(?: be)?(?: any| further| human| another)* ?"
    r"(?:review|approv|check|confirm|verif)",
    r"(?:system|security|admin|compliance|policy|urgent|important) "
    r"(?:alert|notice|message|override|note|warning|update)\b",
    rf"(?:dear|attention|attn|hey|hello|hi|(?:note|message|instructions?) (?:to|for))"
    rf",? (?:the |our )?{_WHO}",
    r"ignore (?:all |any |the |these |this |your )*"
    r"(?:previous|prior|above|earlier|policy|policies|rules?|warnings?|instructions?)",
    r"you (?:can|may|should|must|need to|have to|are free to) (?:safely )?"
    r"(?:approve|skip|ignore|accept|trust|sign)",
    r"(?:this|it) (?:is|was) (?:just |only |merely )?(?:a )?"
    r"(?:test|drill|routine|formality|false positive)",
    r"(?:status|decision|verdict|result|state) ?[:=] ?(?:already )?"
    rf"(?:{_DONE}|approve|granted|ok)",
    rf"\[ ?{_DONE} ?\]",
    r"trust me",
)
_SPEAKS = re.compile("|".join(rf"(?<!\w)(?:{phrase})" for phrase in _PHRASES))
# What a sentence is dressed in: Markdown, quotes, dashes.
_DRESS = re.compile(r"[*_`~#>|\"\u2018\u2019\u201c\u201d\u2010-\u2015\s-]+")


def speaking(lines: Sequence[str]) -> set[int]:
    """The numbers of the lines that hold, begin or end such a phrase."""
    starts, parts, position = [], [], 0
    for line in lines:
        starts.append(position)
        part = _plain(line)
        parts.append(part)
        position += len(part) + 1
    found: set[int] = set()
    for match in _SPEAKS.finditer(" ".join(parts)):
        first = bisect_right(starts, match.start()) - 1
        last = bisect_right(starts, match.end() - 1) - 1
        found.update(n for n in range(first, last + 1) if parts[n].strip())
    return found


def _plain(line: str) -> str:
    """As a reader would say it: hidden characters gone, look-alikes read as Latin."""
    seen = line if line.isascii() else "".join(map(_seen, line))
    return _DRESS.sub(" ", skeleton(seen)).strip()


def _seen(char: str) -> str:
    if not is_hidden(char):
        return char
    return " " if char.isspace() else ""
