"""Checks of a document that need more than one field. Pure.

Each check yields problems as (path, message). A document with any problem is refused
when it is saved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from journal import clock
from policies.choices import ExecutionClass, Risk, Role, Tier
from policies.conditions import Condition, InvalidCondition
from policies.schemas import InvalidSchema, compile_schema, find_declared

from . import amount_checks, other_tools, routes, sentences, unread
from .argument_roles import PRESENTERS, ROLES
from .definitions import (
    LONGEST,
    LONGEST_MEASURE,
    LONGEST_WINDOW,
    SHORTEST,
    SHORTEST_WINDOW,
    EffectClass,
    PeopleTier,
    Profile,
    StepSpec,
    ToolDefinition,
)
from .document import EVERY_TOOL, RESERVED_RULE_IDS, Document, Rule
from .review import Conflict
from .wording import Problem, describe_unknown_tool, suggest_name

ToolCheck = Callable[[ToolDefinition, str], Iterator[Problem]]

_CLOCK = {"hour", "minute", "weekday"}
_AGENT = {"name", "unattended"}
_MONEY = {"amount_minor", "currency"}


def list_problems(document: Document) -> Iterator[Problem]:
    """All problems of a document whose fields are valid on their own."""
    for name, tool in document.tools.items():
        yield from _list_tool_problems(document, tool, f"tools.{name}")
    yield from _list_document_problems(document)
    yield from _list_queue_problems(document)
    yield from _list_calendar_problems(document)
    yield from _list_alert_problems(document)
    yield from _list_measure_problems(document)
    yield from _list_limit_problems(document)
    for name, tool in document.tools.items():
        yield from _list_review_problems(document, tool, f"tools.{name}.review")
    yield from other_tools.list_other_tool_problems(document)
    yield from _list_rule_problems(document)
    yield from routes.list_route_problems(
        document.routes, document.queues, document.tools
    )


def _list_document_problems(document: Document) -> Iterator[Problem]:
    yield from _list_staffing_problems(document.steps, "steps")
    for tier in (Tier.APPROVE, Tier.ESCALATE):
        if tier not in document.steps:
            yield f"steps.{tier}", "list the approvers of this tier"
    for name in document.free_form:
        if name not in document.tools:
            yield "free_form", describe_unknown_tool(name, document)
    figure = document.critical_above
    if figure and figure.currency != document.currency:
        yield "critical_above.currency", f"write it in {document.currency}"


def _list_queue_problems(document: Document) -> Iterator[Problem]:
    held = document.held_unknown
    if held and held.hold not in document.queues:
        yield "unknown_tools.hold", _describe_unknown_queue(document, held.hold)
    for name in document.verifiers:
        if name not in document.queues:
            yield f"verifiers.{name}", _describe_unknown_queue(document, name)


def _list_calendar_problems(document: Document) -> Iterator[Problem]:
    for name, calendar in document.calendars.items():
        for day in calendar.holidays:
            if not clock.EARLIEST.year <= day.year < clock.LATEST.year:
                message = f"{day.isoformat()}: the year {clock.YEARS_RULE}"
                yield f"calendars.{name}.holidays", message


def _list_alert_problems(document: Document) -> Iterator[Problem]:
    for number, alert in enumerate(document.alerts):
        for name in alert.tools:
            if name != EVERY_TOOL and name not in document.tools:
                yield f"alerts.{number}.tools", describe_unknown_tool(name, document)


def _describe_unknown_queue(document: Document, name: str) -> str:
    hint = suggest_name(name, document.queues)
    return f"{name} is not a queue of this policy{hint}"


def _list_tool_problems(
    document: Document, tool: ToolDefinition, path: str
) -> Iterator[Problem]:
    if tool.queue not in document.queues:
        yield f"{path}.queue", _describe_unknown_queue(document, tool.queue)
    try:
        compile_schema(tool.arguments)
    except InvalidSchema as error:
        yield f"{path}.schema", str(error)
        return
    for check in _TOOL_CHECKS:
        yield from check(tool, path)


def _list_floor_problems(tool: ToolDefinition, path: str) -> Iterator[Problem]:
    yield from _compare_floor_to_profile(tool.base, tool.profile, f"{path}.floor")
    for effect_class in tool.classes or []:
        where = f"{path}.classes.{effect_class.name}.floor"
        yield from _compare_floor_to_profile(
            effect_class.base, effect_class.profile, where
        )


def _list_standing_problems(tool: ToolDefinition, path: str) -> Iterator[Problem]:
    """A standing grant would cover no call of a tool whose every floor asks people."""
    floors = [c.base for c in tool.classes] if tool.classes else [tool.base]
    if tool.standing_grant and all(floor.rank > Tier.NOTIFY.rank for floor in floors):
        yield (
            f"{path}.standing_grant",
            "it would cover nothing, because the floor of this tool asks people; lower"
            " the floor, or remove it",
        )


def _compare_floor_to_profile(
    floor: Tier, profile: Profile, path: str
) -> Iterator[Problem]:
    if floor.rank < profile.least.rank:
        yield path, f"{floor} is too low: this profile needs {profile.least} or more"


def _list_effect_class_problems(tool: ToolDefinition, path: str) -> Iterator[Problem]:
    classes = tool.classes or []
    for name, times in Counter(c.name for c in classes).items():
        if times > 1:
            yield f"{path}.classes.{name}", "this class is listed twice: remove one"
    for effect_class in classes:
        yield from _list_form_problems(
            tool, effect_class, f"{path}.classes.{effect_class.name}"
        )


def _list_form_problems(
    tool: ToolDefinition, effect_class: EffectClass, path: str
) -> Iterator[Problem]:
    if effect_class.when is None:
        if effect_class != tool.strictest:
            yield f"{path}.when", "add when: only the strictest class works without one"
        return
    for name in effect_class.when.arguments:
        yield from _report_unknown_argument(tool, name, f"{path}.when")


def _list_named_argument_problems(tool: ToolDefinition, path: str) -> Iterator[Problem]:
    for field in ("sensitive", "redact", "labels"):
        for name in getattr(tool, field):
            if field != "labels" or name not in tool.facts:
                yield from _report_unknown_argument(tool, name, f"{path}.{field}")


def _list_presenter_problems(tool: ToolDefinition, path: str) -> Iterator[Problem]:
    if tool.presenter not in PRESENTERS:
        hint = (
            suggest_name(tool.presenter, PRESENTERS) or "; write table for plain rows"
        )
        yield f"{path}.presenter", f"{tool.presenter} is not a view{hint}"
        return
    known = ROLES.get(tool.presenter, {})
    for role, name in tool.shown.items():
        where = f"{path}.shown.{role}"
        if role not in known:
            hint = suggest_name(role, known)
            yield where, f"{role} is not a part of the view {tool.presenter}{hint}"
        yield from _report_unknown_argument(tool, name, where)


def _list_sentence_problems(tool: ToolDefinition, path: str) -> Iterator[Problem]:
    path = f"{path}.effect"
    if wrong := sentences.describe_problem(tool.effect):
        yield path, wrong
    required = tool.arguments.get("required", [])
    for chip in sentences.list_chips(tool.sentence if tool.effect else ()):
        if fact := tool.fact_of(chip.name):
            yield from _report_unknown_fact(tool, fact, path)
            continue
        yield from _report_unknown_argument(tool, chip.name, path)
        if not chip.optional and chip.name.split(".")[0] not in required:
            yield (
                path,
                f"{chip.name} may be absent, so it cannot be named: write "
                f"{{{chip.name}?}}",
            )


def _list_reversible_problems(tool: ToolDefinition, path: str) -> Iterator[Problem]:
    """A reversible effect may run without approval. So a reversible profile needs a
    compensation, or a reason that two administrators read."""
    profiles = [(f"{path}.profile", tool.profile)]
    for effect_class in tool.classes or []:
        where = f"{path}.classes.{effect_class.name}.profile"
        profiles.append((where, effect_class.profile))
    for where, profile in profiles:
        if not profile.reversible:
            if profile.reversible_because:
                yield f"{where}.reversible_because", "nothing reads this: remove it"
        elif tool.compensation is None and not profile.reversible_because.strip():
            yield (
                f"{where}.reversible",
                "name the tool that undoes it under compensation, or say why it needs "
                "none under reversible_because, or write false",
            )


def _report_unknown_argument(
    tool: ToolDefinition, name: str, path: str
) -> Iterator[Problem]:
    if find_declared(tool.arguments, name) is None:
        hint = suggest_name(name, tool.arguments.get("properties", {}))
        yield path, f"{name} is not an argument of this tool{hint}"


def _report_unknown_fact(
    tool: ToolDefinition, name: str, path: str
) -> Iterator[Problem]:
    if name not in tool.facts:
        hint = suggest_name(name, tool.facts)
        yield path, f"{name} is not among the facts of this tool{hint}"


def _list_execution_problems(tool: ToolDefinition, path: str) -> Iterator[Problem]:
    queryable = tool.execution_class is ExecutionClass.QUERYABLE
    if queryable and tool.look_up is None and not tool.by_agent:
        yield f"{path}.look_up", "a queryable tool requires a look_up"
    if tool.look_up and tool.execution_class is ExecutionClass.OPAQUE:
        yield f"{path}.look_up", "an opaque tool cannot be looked up: remove it"
    for field in ("keys", "facts", "preconditions"):
        if getattr(tool, field) and tool.reader is None:
            yield f"{path}.{field}", "only a reader resolves these: declare reader"


def _list_timeout_problems(tool: ToolDefinition, path: str) -> Iterator[Problem]:
    if not SHORTEST <= tool.timeout <= LONGEST:
        yield f"{path}.timeout", "a time-out must be from 60 seconds to 90 days"
    if not tool.timeout <= tool.longest <= LONGEST:
        yield f"{path}.timeout_max", "this must be from the time-out to 90 days"
    if not SHORTEST_WINDOW <= tool.window <= LONGEST_WINDOW:
        yield (
            f"{path}.window",
            "an execution window must be from 60 seconds to 24 hours",
        )


def _list_batch_problems(tool: ToolDefinition, path: str) -> Iterator[Problem]:
    batch, reversal = tool.batchable, tool.reversal
    if batch is None:
        return
    path = f"{path}.batchable"
    if tool.moves_money and not (batch.per_item and batch.total):
        yield path, "a tool with money requires per_item and total here"
    if reversal is None or reversal.kind == "irreversible":
        yield path, "only a tool that declares a reversal can be batched"
    if tool.risk is Risk.CRITICAL or tool.base.rank > Tier.APPROVE.rank:
        yield path, "critical and escalated effects cannot be batched: remove batchable"
    for name in batch.varying:
        if name not in tool.arguments.get("properties", {}):
            yield f"{path}.varying", f"{name} is not an argument of this tool"
        if name in amount_checks.list_currencies(tool):
            yield (
                f"{path}.varying",
                f"remove the currency {name}: all requests of a batch share one",
            )


def _list_own_steps_problems(tool: ToolDefinition, path: str) -> Iterator[Problem]:
    yield from _list_staffing_problems(tool.steps, f"{path}.steps")


_TOOL_CHECKS: tuple[ToolCheck, ...] = (
    _list_floor_problems,
    _list_effect_class_problems,
    amount_checks.list_amount_problems,
    _list_named_argument_problems,
    _list_presenter_problems,
    _list_sentence_problems,
    _list_reversible_problems,
    _list_execution_problems,
    _list_timeout_problems,
    _list_batch_problems,
    _list_standing_problems,
    _list_own_steps_problems,
    unread.list_schema_problems,
    unread.list_setting_problems,
)


def _list_staffing_problems(
    tiers: Mapping[PeopleTier, list[StepSpec]], path: str
) -> Iterator[Problem]:
    """Each tier needs a person, and ESCALATE needs two, one of them a supervisor."""
    for tier, steps in tiers.items():
        people = sum(step.required for step in steps)
        supervised = any(step.role is Role.SUPERVISOR for step in steps)
        if people < 1:
            yield f"{path}.{tier}", "at least one person must approve"
        if tier is Tier.ESCALATE and (people < 2 or not supervised):
            yield (
                f"{path}.{tier}",
                "at least two people must approve, one of them a supervisor",
            )


def _list_measure_problems(document: Document) -> Iterator[Problem]:
    for name, measure in document.measures.items():
        path = f"measures.{name}"
        if measure.window > LONGEST_MEASURE:
            yield f"{path}.window", f"at most {LONGEST_MEASURE.days} days"
        if measure.tool is None:
            continue
        tool = document.tools.get(measure.tool)
        if tool is None:
            yield f"{path}.tool", describe_unknown_tool(measure.tool, document)
            continue
        if measure.key not in ("agent", "thread", *tool.keys):
            yield f"{path}.key", f"{measure.key} is not a key of {measure.tool}"
        names = amount_checks.list_amount_names(tool)
        if measure.amount and measure.amount not in names:
            hint = suggest_name(measure.amount, names)
            message = f"{measure.amount} is not an amount of {measure.tool}{hint}"
            yield f"{path}.amount", message


def _list_limit_problems(document: Document) -> Iterator[Problem]:
    """A limit on a sum must name a sum of this tool's amounts."""
    for name, tool in document.tools.items():
        for limit in tool.limits:
            measure = document.measures.get(limit.measure or "")
            summed = measure and measure.tool == name and measure.amount
            if limit.measure and not summed:
                yield (
                    f"tools.{name}.limits",
                    f"{limit.measure} is not a sum of this tool: name one that is",
                )


def _list_review_problems(
    document: Document, tool: ToolDefinition, path: str
) -> Iterator[Problem]:
    """Facts that the pages show must be among the tool's declared facts."""
    for field in ("facts", "columns"):
        for name in getattr(tool.review, field):
            yield from _report_unknown_fact(tool, name, f"{path}.{field}")
    conflicts = tool.review.conflicts
    for name, times in Counter(conflict.id for conflict in conflicts).items():
        if times > 1:
            yield f"{path}.conflicts.{name}", "this id is used twice: give each its own"
    for conflict in conflicts:
        for message in _list_conflict_problems(document, tool, conflict):
            yield f"{path}.conflicts.{conflict.id}.when", message


def _list_conflict_problems(
    document: Document, tool: ToolDefinition, conflict: Conflict
) -> Iterator[str]:
    """A conflict must compare an argument of the agent with a fact of the reader."""
    try:
        condition = conflict.condition
    except InvalidCondition as error:
        yield str(error)
        return
    places = {place for place, _ in condition.reads | condition.tested}
    if not {"args", "before"} <= places <= {"args", "before", "money", "keys"}:
        yield (
            "compare an argument with a fact of the reader: args.<name> with"
            " before.<name>; only money and keys may be read besides"
        )
        return
    yield from _list_read_problems(document, tool, condition)


def _list_rule_problems(document: Document) -> Iterator[Problem]:
    for name, times in Counter(rule.id for rule in document.rules).items():
        if times > 1:
            yield f"rules.{name}", "this id is used twice: give each its own"
    for rule in document.rules:
        yield from _examine_rule(document, rule, f"rules.{rule.id}")


def _examine_rule(document: Document, rule: Rule, path: str) -> Iterator[Problem]:
    yield from _list_rule_reference_problems(document, rule, path)
    try:
        condition = rule.condition
    except InvalidCondition as error:
        yield f"{path}.when", str(error)
        return
    for tool in document.tools.values():
        if rule.concerns(tool.name):
            for message in _list_read_problems(document, tool, condition):
                yield f"{path}.when", message


def _list_rule_reference_problems(
    document: Document, rule: Rule, path: str
) -> Iterator[Problem]:
    if rule.id in RESERVED_RULE_IDS or rule.id.startswith("class."):
        yield f"{path}.id", "Counterseal reserves this id"
    if rule.then.queue and rule.then.queue not in document.queues:
        yield f"{path}.then.queue", _describe_unknown_queue(document, rule.then.queue)
    if rule.then.timeout and rule.then.timeout < SHORTEST:
        yield f"{path}.then.timeout", "a time-out must be at least 60 seconds"
    for name in rule.tools:
        if name != EVERY_TOOL and name not in document.tools:
            yield f"{path}.tools", describe_unknown_tool(name, document)


def _list_read_problems(
    document: Document, tool: ToolDefinition, condition: Condition
) -> Iterator[str]:
    """A condition may read only facts that the tool has. Otherwise it would block every
    call of the tool at run time."""
    for place, name in sorted(condition.reads | condition.tested):
        known = _list_known_entries(document, tool, place)
        if name not in known:
            hint = suggest_name(name, known).replace("mean ", f"mean {place}.")
            yield f"{tool.name} has no {place}.{name}{hint}"
    absent = {
        ("args", name) for name in _list_known_entries(document, tool, "args")
    } - {("args", name) for name in tool.arguments.get("required", [])}
    # Rules see an amount that counts as everything also where a call leaves it out.
    absent -= {
        ("args", amount.name)
        for amount in tool.declared_amounts
        if amount.absent == "all" and amount.name in tool.plain_amounts
    }
    for place, name in sorted((condition.reads & absent) - condition.tested):
        yield f'{place}.{name} may be absent: test it with "{name}" in args'


def _list_known_entries(
    document: Document, tool: ToolDefinition, place: str
) -> Iterable[str]:
    """The entries that one map of facts has for proposals of this tool."""
    measured = {
        name: measure
        for name, measure in document.measures.items()
        if measure.event or measure.tool == tool.name
    }
    entries: dict[str, Iterable[str]] = {
        "args": tool.arguments.get("properties", {}),
        "money": _MONEY if tool.moves_money else (),
        "agent": _AGENT,
        "profile": set(Profile.model_fields) - {"reversible_because"},
        "clock": _CLOCK | {f"{name}_open" for name in document.calendars},
        "sum": [name for name, measure in measured.items() if measure.amount],
        "count": measured,
        "before": tool.facts,
        "keys": tool.keys,
    }
    return entries[place]
