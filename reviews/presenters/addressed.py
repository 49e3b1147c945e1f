"""Phrases in agent text that address the reviewer: marked, never removed.

This is a visual hint and not a filter: it may miss a phrase, and the text that it marks
is still shown.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache

from .unicode import fold_lookalikes, is_hidden

_DONE = r"(?:approved|authori[sz]ed|cleared|confirmed|reviewed|verified|signed off)"
_WHO = r"(?:reviewer|approver|supervisor|operator|administrator|admin|moderator|human)"
_TEAM = (
    r"(?:(?:fraud|risk|trust|safety|audit|security|policy|review)"
    r"(?: and \w+)? (?:team|department|desk|check|engine|prevention|control))"
)
_GATE = rf"(?:{_WHO}s?|{_TEAM}|compliance|policy|system|gateway|gate|counterseal)"
_BOSS = rf"(?:{_GATE}|manager|management|legal|security|finance|boss|ceo|cfo|director)"
_DO = r"(?:approve|accept|confirm|authori[sz]e|allow|sign off)"
_BY = r"(?:already )?by (?:the |a |your |our |its )?"
# Requests of customers to the shop, and what they say about their own things, do not
# address the reviewer: "please approve my refund", "I cannot accept this".
_THEIRS = r"(?! (?:my|our|us|me|that|whether|if|when|receipt)\b)"
_NEVER = r"(?<!not )(?<!n't )(?<!cannot )(?<!never )"
_PHRASES = (
    r"(?:already|pre) ?(?:approved|authori[sz]ed|cleared|reviewed|verified|signed off)",
    r"(?P<own>(?:been|was|were|is|are) (?:approved|signed off)"
    r"|(?:been|was|were|is|are) (?:authori[sz]ed|cleared)(?! (?:by|from|through|on) ))",
    rf"(?:{_DONE}|checked|vetted|screened) {_BY}{_GATE}",
    rf"{_DONE} {_BY}{_BOSS}",
    rf"{_BOSS} (?:has|have|had|already)(?: already| been)? (?:{_DONE}|agreed|asked)",
    r"safe to (?:approve|accept|proceed|sign|run|execute|ignore|skip)",
    rf"as (?:the |your |a )?(?:{_WHO}|you) (?:has |have |had )?"
    r"(?:requested|asked|agreed|confirmed|approved|said|instructed|told|wanted)",
    rf"{_NEVER}(?:click|press|hit|tap|choose|select|push) (?:on )?(?:the )?"
    r"(?:approve|accept|confirm|ok|allow|yes|commit)",
    rf"{_NEVER}(?:press|hit|tap) a\b",
    rf"{_DO} (?:now|immediately|at once|without|asap|right away|quickly)\b",
    rf"{_NEVER}(?:approve|authori[sz]e|sign off)(?: on)? (?:this|it|them|all)\b",
    rf"{_NEVER}(?<!you )(?<!could you please )(?<!we )(?<!\bi )"
    r"(?:accept|confirm|allow) (?:this|it)\b",
    rf"(?:please|just|simply|must|should|can|may) (?:safely )?"
    rf"(?:approve|authori[sz]e|sign off)\b{_THEIRS}",
    r"(?:no|without|skip|skipping) "
    r"(?:any |the |further |additional |more |manual |human |need for |need to )*"
    r"(?:review|checks?|checking|approval|verification|confirmation|inspect)"
    r"(?! (?:was|were)\b)",
    r"(?:does|do|did|need) ?n[o']t (?:need|require|have to|be)"
    r"(?: to)?(?: be)?(?: any| further| human| another)* ?"
    r"(?:review|approv|check|confirm|verif)",
    r"no (?:human|person|reviewer|approver|one) (?:needs?|has|have) to "
    r"(?:check|review|approve|look)",
    r"you (?:do not|don't|need not) (?:need to |have to )?(?:look|read|review|check) "
    r"(?:at )?(?:the rest|this|it|any)",
    r"nothing (?:left |more |else |further |here )?(?:to|for you to) "
    r"(?:review|approve|decide|inspect|verify|check here)",
    r"(?:policy|security|fraud|risk|compliance|safety|gate|approval|automat(?:ic|ed)"
    r"|all|every|\w+ of \w+)"
    r" (?:checks?|reviews?) ?[:=]? ?(?:have |has |were |was |are |is )?(?:been )?"
    r"(?:passed|complete|ok|green|done|fine|clear|successful)",
    r"passed (?:all |every |the |our )*(?:policy|security|fraud|risk|compliance|safety"
    r"|gate|approval|automat(?:ic|ed)) checks?",
    r"(?<!your )(?<!the )(?<!my )(?<!\ba )"
    r"(?:system|security|admin|compliance|policy|urgent|important|counterseal|gateway) "
    r"(?:alert|notice|message|override|note|warning ?:)(?!\w)",
    r"(?:admin|compliance|policy|urgent|important) update\b",
    r"(?:system|assistant|developer|counterseal|gateway|policy engine) ?: ",
    r"(?:reviewers?|approvers?) ?[:,] ",
    r"(?:the|an?|any|our|your) (?:reviewer|approver) (?:can|may|should|must|need not)",
    r"(?:person|human|people) (?:reviewing|approving|deciding|in the loop)",
    r"(?:first|second|other|last) (?:approver|reviewer)",
    rf"{_BOSS} (?:approval|sign off|ok|consent) (?:attached|given|granted|on file)",
    r"(?:required|expected) to (?:approve|sign off)",
    r"whoever (?:reviews|approves|decides|checks)",
    r"(?:approved|authori[sz]ed|cleared|verified)[ ,:]{1,3}"
    r"(?:proceed|go ahead|execute)",
    r"(?:do not|don't|never) (?:reject|escalate|decline|deny) (?:this|it)\b",
    r"reject(?:ing)? (?:this|it) (?:will|would|violates|breaks)",
    r"recommend(?:ation|ed) ?[:=] ?(?:to )?(?:approve|accept)",
    rf"(?:dear|attention|attn|hey|hello|hi|(?:note|message|instructions?) (?:to|for))"
    rf",? (?:the |our )?{_WHO}",
    r"ignore (?:all |any |the |these |this |your )*"
    r"(?:previous|prior|above|earlier|policy|policies|rules?|warnings?|instructions?"
    r"|(?:content|text|message|evidence|rest|redactions?|lines?)"
    r" (?:below|above|of this))",
    r"you (?:can|may|should|must|need to|have to|are free to) (?:safely )?"
    r"(?:approve|skip|ignore|accept|trust|sign)\b"
    r"(?! (?:my|our|returns?|refunds?|the (?:return|item|parcel|goods)|for)\b)",
    r"(?:this|it) (?:is|was) (?:just |only |merely )?(?:a )?"
    r"(?:test|drill|routine|formality|false positive)\b"
    r"(?! (?:order|print|page|model|unit|sample|purchase|run|mail|to)\b)",
    r"(?:status|decision|verdict|result|state) ?[:=] ?(?:already )?"
    rf"(?:{_DONE}|approve|granted|ok)\b",
    rf"\[ ?(?:{_DONE}|approve|reject) ?\]",
    # A forged heading, button or banner.
    r"<[a-z][^<]{0,80}[ =]"
    rf"(?:{_DONE}|approve|accept|reject|continue|confirm)(?: \w+){{0,3}} ?</",
    r"(?:approvals?|quorum) (?:given|complete|granted|reached)\b",
    rf"as agreed with (?:the |your |our )?{_BOSS}",
    # Counterseal's note on an equal value, typed by an agent.
    r"redacted\b\W{0,3}(?:\w{4}\W{0,3})?(?:is |are )?(?:the )?same as\b",
    r"trust me",
)
# What a text that is sent to a customer can say only to a reviewer: "your refund was
# approved", "please confirm at ..." and "you can ignore this mail" are the customer's.
_JUDGE = (
    r"(?:reviewer|approver|moderator|policy engine|approval gate|gateway|counterseal)s?"
)
_PROPOSED = (
    r"(?:request|proposal|action|tool call|call|effect|batch|execution|transaction"
    r"|refund|payout|mail|e mail|email|message|change)"
)
_OUTGOING_PHRASES = (
    rf"(?:{_DONE}|checked|vetted|screened) {_BY}{_JUDGE}",
    rf"{_JUDGE} (?:has|have|had|already)(?: already| been)? (?:{_DONE}|agreed|asked)",
    r"safe to (?:approve|execute)",
    rf"as (?:the |your |a )?{_JUDGE} (?:has |have |had )?"
    r"(?:requested|asked|agreed|confirmed|approved|said|instructed|told|wanted)",
    rf"{_NEVER}(?:approve|authori[sz]e|sign off)(?: on)? "
    rf"(?:this|the|that|it|all)(?: \w+)? {_PROPOSED}s?\b",
    rf"{_NEVER}approve(?: this| it| them| all)? "
    r"(?:now|immediately|at once|without|asap|right away|quickly)\b",
    rf"{_NEVER}(?:please|just|simply|must|should) (?:safely )?approve(?: it| this)?"
    r"(?= ?(?:[.!]|$))",
    r"(?:no|without|skip|skipping|not? need(?: for)?|not require) "
    r"(?:any |the |further |additional |more |manual |human |another )*"
    r"(?:review|approval|(?:human|manual) check)s?\b"
    r"(?! (?:of (?:your|the)|was|were)\b)",
    rf"{_NEVER}(?:click|press|hit|tap|choose|select|push) (?:on )?(?:the )?approve\b"
    r"(?! (?:in|on) (?:your|the)\b)",
    r"supervisor (?:approval|sign off|ok|consent) (?:attached|given|granted|on file)",
    r"required to approve\b",
    r"no (?:human|reviewer|approver) (?:needs?|has|have) to",
    r"you (?:do not|don't|need not) (?:need to |have to )?(?:look|read|review|check) "
    r"(?:at )?(?:the rest|this)\b",
    r"nothing (?:left |more |else |further |here )?(?:to|for you to) "
    r"(?:review|approve|decide|inspect)",
    r"(?:policy|fraud|risk|compliance|gate|approval|automat(?:ic|ed)|\d+ of \d+)"
    r" (?:checks?|reviews?) ?[:=]? ?(?:have |has |were |was |are |is )?(?:been )?"
    r"(?:passed|green|clear|successful)",
    r"passed (?:all |every |the |our )*(?:policy|fraud|risk|compliance|gate|approval"
    r"|automat(?:ic|ed)) checks?",
    r"(?:system|admin|compliance|policy|counterseal|gateway) override\b",
    r"counterseal (?:alert|notice|message|note)\b",
    r"(?:counterseal|gateway|policy engine) ?: ",
    r"(?:reviewers?|approvers?|moderators?) ?[:,] ",
    r"(?:dear|attention|attn|hey|hello|hi|(?:note|message|instructions?) (?:to|for))"
    rf",? (?:the |our )?(?:{_JUDGE}|supervisor)",
    r"(?:the|an?|any|our|your) (?:reviewer|approver) (?:can|may|should|must|need not)",
    r"(?:person|human|people) (?:reviewing|approving|deciding|in the loop)",
    r"(?:first|second|other|last) approver",
    r"whoever (?:reviews|approves|decides)",
    r"(?:do not|don't|never) (?:reject|escalate|deny) (?:this|it)\b",
    r"reject(?:ing)? (?:this|it) (?:will|would|violates|breaks)",
    r"recommend(?:ation|ed) ?[:=] ?(?:to )?(?:approve|accept)",
    r"ignore (?:all |any |the |these |this |your )*"
    r"(?:(?:previous|prior|above|earlier) (?:instructions?|rules?|polic)"
    r"|policy|policies|rules?|redactions?)",
    r"you (?:can|may|should|must|need to|have to|are free to) (?:safely )?approve\b"
    r"(?! (?:my|our|the (?:quote|offer|design|draft|proof|return)))",
    r"(?:decision|verdict) ?[:=] ?(?:already )?(?:approved?|granted|ok)\b",
    r"\[ ?(?:approve|reject) ?\]",
    r"<[a-z][^<]{0,80}[ =](?:approve and run|approved? by|reject)(?: \w+){0,3} ?</",
    r"(?:approvals?|quorum) (?:given|complete|granted|reached)\b",
    r"redacted\b\W{0,3}(?:\w{4}\W{0,3})?(?:is |are )?(?:the )?same as\b",
)


def _compile(phrases: Sequence[str]) -> re.Pattern[str]:
    """Matched once at the start of each word, instead of once per phrase and
    character."""
    return re.compile(rf"(?<!\w)(?:{'|'.join(f'(?:{phrase})' for phrase in phrases)})")


_ADDRESSING_PHRASE = _compile(_PHRASES)
_OUTGOING_PHRASE = _compile(_OUTGOING_PHRASES)
# A line of its own that reads like a verdict or a button.
_VERDICT_LINE = re.compile(
    r"\W*(?:approved|authori[sz]ed|cleared|pre ?approved|approve|approve (?:now|all)"
    r"|approved? (?:and|&) (?:run|executed?))\W*"
)
_OUTGOING_VERDICT_LINE = re.compile(
    r"\W*(?:approve|approve (?:now|all)|approved by (?:the )?"
    rf"(?:{_JUDGE}|supervisor)|approved? (?:and|&) (?:run|executed?))\W*"
)
# "My return was approved last week" reports a decision about something else.
_OWNER_BEFORE = re.compile(r"\b(?:my|our|your) (?:\w+ ){0,3}(?:has |have |had )?$")
_OWNER_WINDOW = 40  # characters before a verb that may say whose it is
# Decoration of a sentence: Markdown, quotes, dashes.
_DECORATION = re.compile(r"[*_`~#>|\"\u2018\u2019\u201c\u201d\u2010-\u2015\s-]+")


def find_addressed_lines(lines: Sequence[str], *, outgoing: bool = False) -> set[int]:
    """Find the lines that contain such a phrase, or a part of one; returns their
    indexes. Of an `outgoing` text, which the effect sends to its reader, only what a
    reviewer alone can be meant by counts."""
    phrase = _OUTGOING_PHRASE if outgoing else _ADDRESSING_PHRASE
    verdict = _OUTGOING_VERDICT_LINE if outgoing else _VERDICT_LINE
    starts, parts, position = [], [], 0
    for line in lines:
        starts.append(position)
        part = _normalise_line(line)
        parts.append(part)
        position += len(part) + 1
    addressed = {n for n, part in enumerate(parts) if part and verdict.fullmatch(part)}
    text = " ".join(parts)
    for match in phrase.finditer(text):
        if match.lastgroup == "own" and _OWNER_BEFORE.search(
            text[: match.start()][-_OWNER_WINDOW:]
        ):
            continue
        first = bisect_right(starts, match.start()) - 1
        last = bisect_right(starts, match.end() - 1) - 1
        addressed.update(n for n in range(first, last + 1) if parts[n].strip())
    return addressed


@lru_cache(maxsize=512)
def is_addressed_to_reviewer(text: str) -> bool:
    """Whether any line of a text addresses the reviewer. Cached, because pages and
    batches ask repeatedly about the same texts."""
    return bool(find_addressed_lines(_split_lines(text)))


@lru_cache(maxsize=512)
def is_letter_addressed_to_reviewer(text: str) -> bool:
    """The same of a text that the effect sends to its reader."""
    return bool(find_addressed_lines(_split_lines(text), outgoing=True))


def _split_lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").split("\n")


def _normalise_line(line: str) -> str:
    """The line as a person reads it: hidden characters removed, look-alikes as
    Latin."""
    seen = line if line.isascii() else "".join(map(_replace_hidden, line))
    return _DECORATION.sub(" ", fold_lookalikes(seen)).strip()


def _replace_hidden(char: str) -> str:
    if not is_hidden(char):
        return char
    return " " if char.isspace() else ""
