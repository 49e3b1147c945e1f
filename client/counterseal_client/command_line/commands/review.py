"""`counterseal review`: what waits for a person, and their decisions.

A decision here is the same as one by the people's API, on exactly the version that was
shown. What only the page can ask for is decided there: the command prints its link.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from ...calls import quote_path
from ...errors import ApiError, CountersealError
from ...models import parse_answer
from ...people import RequestDetail, RequestLine
from ...terminal.decisions import (
    REJECTION_CODES,
    PersonVerdict,
    ShownRequest,
    VerdictOutcome,
    VerdictResult,
    ask_verdict,
    build_approval,
    check_verdict,
    find_page_reason,
    list_verdicts,
    submit_verdict,
)
from ...terminal.request_view import describe_line, describe_request
from ...terminal.text import Line, Screen, Style, ask_line
from ..outcomes import VERDICT_CODES, ExitCode
from ..sessions import InvalidUsage, PersonSession, open_person_session, print_json
from ..shown_requests import find_shown_request, remember_request

USAGE = """counterseal review [--all] [--json]
       counterseal review ID
       counterseal review show ID [--json]
       counterseal review approve ID [--reason TEXT] [--yes]
       counterseal review reject ID --reason TEXT [--code CODE] [--yes]"""
VERBS = ("show", "approve", "reject")


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "review",
        help="list, show and decide what waits for you",
        usage=USAGE,
        description="List what waits for you; show one request and ask for your"
        " decision; show it only; or decide at once.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "words",
        nargs="*",
        metavar="ID",
        help="a request, r-..., after show, approve, reject or nothing",
    )
    parser.add_argument(
        "--all", action="store_true", help="also list what others must decide"
    )
    parser.add_argument("--json", action="store_true", help="print the API's object")
    parser.add_argument("--reason", default="", metavar="TEXT", help="why")
    parser.add_argument(
        "--code", default="", choices=("", *REJECTION_CODES), help="of a rejection"
    )
    parser.add_argument(
        "--yes",
        action="store_true",
        help="do not ask; decides on the version that you were shown last",
    )
    parser.set_defaults(run=run, by_person=True)


def run(given: argparse.Namespace) -> ExitCode:
    """Do what the words say."""
    verb, request = parse_words(given.words)
    check_options(given, verb)
    session = open_person_session()
    with session.gate:
        if not request:
            return list_requests(session, given)
        if verb == "show":
            return show_request(session, request, as_json=given.json)
        if verb:
            said = build_verdict(verb, given)
            if given.yes:
                return decide_at_once(session, request, said)
            return decide_by_question(session, request, said)
        return decide_by_question(session, request)


def parse_words(words: list[str]) -> tuple[str, str]:
    """The verb and the request, either may be empty. Raises InvalidUsage."""
    verb = words[0] if words and words[0] in VERBS else ""
    rest = words[1:] if verb else words
    if len(rest) > 1 or (verb and not rest):
        raise InvalidUsage(
            "Name one request.", next_step="See `counterseal review --help`."
        )
    request = rest[0] if rest else ""
    if request and not request.startswith("r-"):
        raise InvalidUsage(
            f"{request} is not the id of a request: such an id begins with r-.",
            next_step="`counterseal review` lists them.",
        )
    return verb, request


def check_options(given: argparse.Namespace, verb: str) -> None:
    """Refuse options that this form of the command does not have."""
    decides = verb in ("approve", "reject")
    if (given.yes or given.reason) and not decides:
        raise InvalidUsage(
            "`--yes` and `--reason` can only be used with approve and reject."
        )
    if given.all and given.words:
        raise InvalidUsage("`--all` can only be used with the list.")
    if given.code and verb != "reject":
        raise InvalidUsage("`--code` can only be used with reject.")
    if given.json and (decides or (given.words and verb != "show")):
        raise InvalidUsage("`--json` can only be used with the list and with show.")


def build_verdict(verb: str, given: argparse.Namespace) -> PersonVerdict:
    """The verdict of the words. Raises InvalidUsage for a rejection without a
    reason."""
    if verb == "approve":
        return build_approval(given.reason)
    code = given.code or "other"
    if code == "other" and not given.reason.strip():
        raise InvalidUsage(
            "A rejection needs a reason: the agent reads it.",
            next_step="Give `--reason TEXT`, or another `--code`.",
        )
    return PersonVerdict("reject", code, given.reason)


def list_requests(session: PersonSession, given: argparse.Namespace) -> ExitCode:
    """What waits for this person; with `--all`, also what others must decide."""
    rows = session.run(session.people.list_rows())
    found = [parse_answer(RequestLine, row) for row in rows]
    mine = [row for row in found if given.all or row.verdicts]
    if given.json:
        ids = {row.id for row in mine}
        print_json([row for row in rows if row["id"] in ids])
        return ExitCode.DONE
    screen = Screen(sys.stdout)
    for row in mine:
        screen.print_lines(describe_line(row))
    if not mine:
        screen.print_line("Nothing waits for you.")
    if others := len(found) - len(mine):
        screen.print_line(
            f"{others} more for others to decide: `counterseal review --all`"
        )
    return ExitCode.DONE


def show_request(session: PersonSession, request: str, *, as_json: bool) -> ExitCode:
    """Print everything that a person decides on."""
    if as_json:
        connection = session.people.connection
        call = connection.build_call("GET", quote_path("requests", request))
        found = session.run(connection.send_call(call))
        shown = parse_answer(RequestDetail, found)
        print_json(found)
        remember_request(session.people, ShownRequest.of_detail(shown))
        return ExitCode.DONE
    detail = print_request(session, request)
    if detail.status != "pending" or not detail.verdicts:
        return ExitCode.DONE
    screen = Screen(sys.stdout)
    for verb in list_verdicts(detail):
        reason = ' --reason "..."' if verb == "reject" else ""
        command = f"counterseal review {verb} {detail.id}{reason}"
        screen.print_line(Line(f"To {verb}: {command}", copied=True))
    if text := find_page_reason(detail, "approve"):
        screen.print_line(f"{text} Approve it on its page.")
    return ExitCode.DONE


def print_request(session: PersonSession, request: str) -> RequestDetail:
    """Show the newest version of a request, and remember which it was."""
    detail = session.run(session.people.get_request(request))
    url = session.people.build_page_url(detail.id)
    Screen(sys.stdout).print_lines(describe_request(detail, url))
    remember_request(session.people, ShownRequest.of_detail(detail))
    return detail


def decide_by_question(
    session: PersonSession, request: str, meant: PersonVerdict | None = None
) -> ExitCode:
    """Show the request, ask the person for their verdict, or whether they still want
    the one that the words of the command have, and decide on exactly what was shown."""
    detail = print_request(session, request)
    verdicts = list_verdicts(detail)
    result = None
    if meant is not None:
        result = check_verdict(detail, meant.verdict)
    elif not verdicts:
        result = check_verdict(detail, "approve")
    if result is not None:
        return report_result(session, request, result)
    said = confirm_verdict(meant) if meant else ask_person(detail)
    if said is None:
        text = "Nothing was recorded: the request still waits."
        result = VerdictResult(VerdictOutcome.LEFT, text)
    else:
        result = give_verdict(session, ShownRequest.of_detail(detail), said)
    return report_result(session, request, result)


def ask_person(detail: RequestDetail) -> PersonVerdict | None:
    """The person's own verdict."""
    screen = Screen(sys.stderr)
    screen.print_line()
    screen.print_line(Line(detail.title, style=Style.STRONG))
    if text := find_page_reason(detail, "approve"):
        screen.print_line(f"{text} Approve it on its page; here you can reject it.")
    return ask_verdict(detail, ask_line, screen.print_line)


def confirm_verdict(said: PersonVerdict) -> PersonVerdict | None:
    """The verdict of the words, if the person still wants it."""
    try:
        answer = ask_line(f"\n{said.verdict.capitalize()} this request? [y/N] ")
    except EOFError:
        return None
    return said if answer.lower() in ("y", "yes") else None


def decide_at_once(
    session: PersonSession, request: str, said: PersonVerdict
) -> ExitCode:
    """Decide on the version that the person was shown last. One that they have not seen
    is shown instead, and nothing is decided."""
    shown = find_shown_request(session.people, request)
    detail = session.run(session.people.get_request(request))
    result = check_verdict(detail, said.verdict)
    if result is None and shown != ShownRequest.of_detail(detail):
        print_request(session, request)
        text = "It has changed since it was shown to you."
        if shown is None:
            text = "You had not been shown this request."
        text += " Read it above, then repeat the command."
        result = VerdictResult(VerdictOutcome.CHANGED, text)
    if result is None:
        assert shown is not None
        result = give_verdict(session, shown, said)
    return report_result(session, request, result)


def give_verdict(
    session: PersonSession, shown: ShownRequest, said: PersonVerdict
) -> VerdictResult:
    """Give the verdict. Where its answer is lost, say how to see what became of it."""
    try:
        return session.run(submit_verdict(session.people, shown, said))
    except (CountersealError, KeyboardInterrupt) as error:
        if not isinstance(error, ApiError) or error.status >= 500:
            text = f"It may have been recorded: counterseal review show {shown.id}"
            Screen(sys.stderr).print_line(Line(text, copied=True))
        raise


def report_result(
    session: PersonSession, request: str, result: VerdictResult
) -> ExitCode:
    """Say what became of the verdict; what was not recorded goes to standard error."""
    url = session.people.build_page_url(request)
    if result.outcome is VerdictOutcome.RECORDED:
        Screen(sys.stdout).print_line(result.text)
        if result.request is not None and result.request.status == "recallable":
            Screen(sys.stdout).print_line(Line(url, copied=True))
        return ExitCode.DONE
    screen = Screen(sys.stderr)
    screen.print_line(result.text)
    if result.outcome is VerdictOutcome.PAGE_NEEDED:
        text = f"Nothing was recorded. Decide it there: {url}"
        screen.print_line(Line(text, copied=True))
    return VERDICT_CODES[result.outcome]
