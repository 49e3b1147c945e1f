"""The guards without which an effect could happen twice, without authority, or after
somebody said no. Each is taken out alone, and the tests it names must notice (T1)."""

from __future__ import annotations

from dataclasses import dataclass

INHERITED = "tests/reviews/test_inherited.py"
MODEL = "tests/journeys/test_model.py"
EXECUTIONS = "tests/reviews/executions tests/reviews/test_claims.py"
DECISIONS = "tests/reviews/test_decisions.py"
AUTHORITY = "tests/security/test_authority.py"
CASES = "tests/reviews/test_cases.py"
CLAIM = "tests/races/test_claim.py"
DEADLINES = "tests/reviews/test_deadlines.py"
DECIDE = "tests/races/test_decide.py"
EXPIRE = "tests/races/test_expire.py"
PROPOSE = "tests/races/test_propose.py"
OUTBOX = "tests/journal/test_outbox.py"
STEP_UP = "tests/reviews/test_step_up.py"
STOP = "tests/races/test_stop.py"
REDEEM = "tests/races/test_redeem.py"
REDEEM_KEYS = "tests/reviews/test_redeem_keys.py"
PERMISSIONS = "tests/reviews/test_permissions.py"
REPAIRS = "tests/agents/test_repairs.py"
RESTORES = "tests/reviews/test_restores.py"
STOPS = "tests/reviews/test_stops.py"


@dataclass(frozen=True)
class Guard:
    """One piece of the product, and what it reads as when the guard is gone."""

    name: str
    file: str
    text: str
    without: str
    noticed_by: str  # a file of tests, or one test of it

    def __str__(self) -> str:
        return self.name


GUARDS = [
    # Who may speak, on what, and until when.
    Guard(
        "the request is locked before votes are counted",
        "reviews/locks.py",
        """    return ApprovalRequest.objects.select_related(
        "proposal", "queue"
    ).select_for_update(of=("self",), no_key=True)""",
        '    return ApprovalRequest.objects.select_related("proposal", "queue")',
        f"{DECIDE}::test_two_of_two_simultaneous_approvals_are_enough",
    ),
    Guard(
        "a row that is no longer as read is not written",
        "journal/machine.py",
        "        if found.update(**values) != len(rows):\n            raise Conflict",
        "        found.update(**values)",
        EXPIRE,
    ),
    Guard(
        "a verdict names the version and bytes that were seen",
        "reviews/checks.py",
        "    if said.is_stale(request):",
        "    if False:",
        DECISIONS,
    ),
    Guard(
        "nothing is decided after the deadline",
        "reviews/lateness.py",
        "    if overdue or status is RequestStatus.EXPIRED:",
        "    if status is RequestStatus.EXPIRED:",
        f"{DECISIONS} {MODEL}",
    ),
    Guard(
        "the deadline is checked by the write itself",
        "reviews/tallies.py",
        "    in_time = Q(expires_at__gt=clock.ClockTimestamp())",
        "    in_time = Q(pk__isnull=False)",
        EXPIRE,
    ),
    Guard(
        "nothing is decided under a stop",
        "reviews/checks.py",
        "    if found.stopped[_action(request.proposal)] is StopMode.STOPPED:",
        "    if False:",
        f"{STOP} {MODEL}",
    ),
    Guard(
        "no one decides their own",
        "reviews/permissions.py",
        "    if person.public_id in request.proposal.barred:",
        "    if False:",
        DECISIONS,
    ),
    Guard(
        "who escalated waits for others",
        "reviews/permissions.py",
        "    if person.public_id in version.escalated_by:",
        "    if False:",
        f"{DECISIONS} {MODEL}",
    ),
    Guard(
        "one vote a human over all steps",
        "reviews/permissions.py",
        "    if person.public_id in version.carried or voted:",
        "    if voted:",
        CASES,
    ),
    Guard(
        "a supervisor's step is a supervisor's",
        "reviews/permissions.py",
        '    if not any(quorum.fills(role, step["role"]) for step in version.steps):',
        "    if False:",
        f"{DECISIONS} {MODEL}",
    ),
    Guard(
        "administrators and auditors never decide",
        "reviews/permissions.py",
        "    if not person.is_active or roles & NEVER_DECIDE:",
        "    if not person.is_active:",
        PERMISSIONS,
    ),
    Guard(
        "nobody approves above their ceiling",
        "reviews/checks.py",
        "    if permissions.above_ceiling(\n"
        "        case.said.person, revision.amount_minor, revision.currency\n"
        "    ):",
        "    if False:",
        DECISIONS,
    ),
    Guard(
        "every step has all its people",
        "reviews/quorum.py",
        "    return not any(missing(steps, given))",
        "    return True",
        f"{DECISIONS} {MODEL}",
    ),
    Guard(
        "an edit does not undo a colleague's escalation",
        "reviews/edits.py",
        "    if lower or quorum.weaker(asks, than=asked):",
        "    if False:",
        AUTHORITY,
    ),
    Guard(
        "a forbidden edit is refused",
        "reviews/edits.py",
        "    if ruling.tier is Tier.BLOCK:",
        "    if False:",
        DECISIONS,
    ),
    Guard(
        "the highest tier needs a fresh proof",
        "reviews/checks.py",
        "    if version.step_up and said.commits:",
        "    if False:",
        f"{DECISIONS} {STEP_UP}",
    ),
    Guard(
        "a proof is for this verdict alone",
        "reviews/cases.py",
        "    if proof is None or not proof.holds(said.bound, now):",
        "    if proof is None:",
        STEP_UP,
    ),
    Guard(
        "nothing is recalled after its window",
        "reviews/recalls.py",
        "    if request.recall_until is None or request.recall_until <= now:",
        "    if request.recall_until is None:",
        DEADLINES,
    ),
    Guard(
        "only what is overdue expires",
        "reviews/deadlines.py",
        "        status=RequestStatus.PENDING,\n"
        "        expires_at__lte=clock.ClockTimestamp(),\n",
        "        status=RequestStatus.PENDING,\n",
        f"{EXPIRE} {MODEL}",
    ),
    Guard(
        "a recall window is waited for",
        "reviews/deadlines.py",
        "status=RequestStatus.RECALLABLE, recall_until__lte=clock.ClockTimestamp()",
        "status=RequestStatus.RECALLABLE",
        DEADLINES,
    ),
    # What runs, once, and only as it was allowed.
    Guard(
        "an execution is locked before it is claimed",
        "reviews/locks.py",
        '        grant = grants.select_for_update(of=("self",), no_key=True)'
        ".get(execution=pk)\n"
        "    except Grant.DoesNotExist:\n"
        "        raise NotFound from None\n"
        '    row = Execution.objects.select_for_update(of=("self",), no_key=True)'
        ".get(pk=pk)\n",
        "        grant = grants.get(execution=pk)\n"
        "    except Grant.DoesNotExist:\n"
        "        raise NotFound from None\n"
        "    row = Execution.objects.get(pk=pk)\n",
        CLAIM,
    ),
    Guard(
        "a held lease is not taken",
        "reviews/claims.py",
        "    if execution.lease_until is None or execution.lease_until > now:",
        "    if execution.lease_until is None:",
        f"{EXECUTIONS} {MODEL}",
    ),
    Guard(
        "an opaque tool is tried once",
        "reviews/claims.py",
        "    if not why and approved.class_of(execution) is not ExecutionClass.OPAQUE:",
        "    if not why:",
        f"{EXECUTIONS} {MODEL}",
    ),
    Guard(
        "nothing begins after its window",
        "reviews/claims.py",
        "    if execution.grant.expires_at <= now:\n"
        "        endings.close_window(execution, now)\n"
        "        return None\n",
        "",
        f"{EXECUTIONS} {MODEL}",
    ),
    Guard(
        "no worker takes what the agent performs",
        "reviews/claims.py",
        "    if execution.due_at > now or not ours or turns.must_wait(execution):",
        "    if execution.due_at > now or turns.must_wait(execution):",
        f"{EXECUTIONS} {MODEL}",
    ),
    Guard(
        "a switch is looked at when it is claimed",
        "reviews/claims.py",
        "    if no is not None:\n        if not no.later:",
        "    if False:\n        if not no.later:",
        f"{EXECUTIONS} {MODEL}",
    ),
    Guard(
        "who slept too long begins nothing",
        "reviews/fences.py",
        "    if held.update(began_at=clock.ClockTimestamp(), retried_at=None) != 1:\n"
        "        raise StaleFence",
        "    held.update(began_at=clock.ClockTimestamp(), retried_at=None)",
        CLAIM,
    ),
    Guard(
        "only the holder of the fence writes",
        "reviews/fences.py",
        "if execution.status != ExecutionStatus.CLAIMED or execution.fence != fence:",
        "if execution.status != ExecutionStatus.CLAIMED:",
        f"{EXECUTIONS} {MODEL}",
    ),
    Guard(
        "what may have happened is looked up first",
        "reviews/executions/looking.py",
        "    if claim.untouched or claim.definition.look_up is None:",
        "    if True:",
        f"{EXECUTIONS} {MODEL}",
    ),
    Guard(
        "what was unknown once is not taken for untouched",
        "reviews/earlier.py",
        "not (doubted and can_look) and not inherited",
        "not inherited",
        "tests/reviews/test_reconciliation.py",
    ),
    Guard(
        "what a service may still be at is looked up a lease later",
        "reviews/executions/recording.py",
        "    return max(due, execution.lease_until)",
        "    return due",
        EXECUTIONS,
    ),
    Guard(
        "what failed in an attempt that never ended is its outcome",
        "reviews/executions/looking.py",
        "found.code == executors.NOT_FOUND or retried",
        "True",
        EXECUTIONS,
    ),
    Guard(
        "what waits to be tried once more is taken back too",
        "reviews/grants.py",
        "    queued = Execution.objects.filter("
        "proposal=proposal, status=ExecutionStatus.QUEUED)",
        "    queued = Execution.objects.filter("
        'proposal=proposal, status=ExecutionStatus.QUEUED, grant__status="live")',
        f"tests/reviews/test_stops.py tests/reviews/test_grants.py {MODEL}",
    ),
    Guard(
        "what was found is not done again",
        "reviews/executions/running.py",
        "        if not denied and not may_repeat(claim, found):\n"
        "            return found\n",
        "",
        f"{EXECUTIONS} {MODEL}",
    ),
    Guard(
        "the stored bytes are the granted ones",
        "reviews/rechecks.py",
        "    if stored == grant.revision.action_hash == grant.action_hash:",
        "    if True:",
        EXECUTIONS,
    ),
    Guard(
        "a policy tightened since blocks",
        "reviews/rechecks.py",
        "    if asked.tier.rank > _decided_tier(execution, request).rank:",
        "    if False:",
        "tests/reviews/test_tightened.py",
    ),
    Guard(
        "who agreed is enough for the policy of now",
        "reviews/rechecks.py",
        "    return None if approvers.enough(votes, asked) else TIGHTENED",
        "    return None",
        "tests/reviews/test_tightened.py",
    ),
    Guard(
        "an approver without authority blocks",
        "reviews/approvers.py",
        "        if not valid:",
        "        if False:",
        EXECUTIONS,
    ),
    Guard(
        "a record that changed since blocks",
        "reviews/rechecks.py",
        "    if _holds(expected, fresh.preconditions):",
        "    if True:",
        EXECUTIONS,
    ),
    Guard(
        "a stop between claim and effect is honoured",
        "reviews/executions/running.py",
        "    no = no or rechecks.at_last(claim.execution)",
        "    no = no",
        CLAIM,
    ),
    Guard(
        "what a stop took back once is asked anew",
        "reviews/stops.py",
        " OR mode = 'stopped' AND at >= %(since)s",
        " OR false AND at >= %(since)s",
        STOPS,
    ),
    Guard(
        "a vote that was revoked once is none",
        "reviews/approvers.py",
        "        row.lifted_at is None or (vote.at is not None and row.at >= vote.at)",
        "        row.lifted_at is None",
        "tests/reviews/test_revocations.py",
    ),
    Guard(
        "a window that ends during the checks is over",
        "reviews/rechecks.py",
        "    return _window(execution) or _approvers",
        "    return _approvers",
        EXECUTIONS,
    ),
    Guard(
        "an approver who goes during the checks is gone",
        "reviews/rechecks.py",
        " or _approvers(execution) or switches(execution)",
        " or switches(execution)",
        EXECUTIONS,
    ),
    Guard(
        "a grant that is not taken says nothing of an earlier attempt",
        "reviews/executions/running.py",
        "    if outcome.leaves_earlier_open and not claim.untouched:",
        "    if outcome.this_attempt_only and not claim.untouched:",
        EXECUTIONS,
    ),
    Guard(
        "what a late report says happened is not done again",
        "reviews/earlier.py",
        "    if late and alarms.says_it_happened(execution):",
        "    if False:",
        "tests/reviews/test_settlements.py",
    ),
    Guard(
        "what was changed since a restore is asked of people",
        "reviews/doubts.py",
        "OTHER_VERSION if inherited.is_revised_since(execution) else RESTORED",
        "RESTORED",
        INHERITED,
    ),
    Guard(
        "nothing expires while two people have not looked",
        "reviews/deadlines.py",
        "    epochs.check()\n    locks.deadlines(shared=True)",
        "    locks.deadlines(shared=True)",
        INHERITED,
    ),
    Guard(
        "an effect that goes elsewhere is another one",
        "reviews/rechecks.py",
        "    if _place(current) != _place(proposed):",
        "    if False:",
        "tests/reviews/test_tightened.py",
    ),
    Guard(
        "a token says what its row says",
        "reviews/grant_tokens.py",
        "    if differ:",
        "    if False:",
        "tests/reviews/test_grant_tokens.py",
    ),
    Guard(
        "a failure is retried inside its window only",
        "reviews/settlements.py",
        "    if execution.grant.expires_at <= due_again(execution, now):",
        "    if False:",
        f"{EXECUTIONS} {MODEL}",
    ),
    Guard(
        "a claim is given again to the call that made it only",
        "reviews/redeem_keys.py",
        "    return hmac.compare_digest("
        "execution.redeem_digest, _digest(execution, key))",
        "    return True",
        f"{REDEEM_KEYS} {REDEEM}",
    ),
    Guard(
        "what a repeated call was given is not taken back",
        "reviews/executions/refusing.py",
        "    if execution.began_at is not None:\n        raise StaleFence\n",
        "",
        REDEEM,
    ),
    # What takes two people.
    Guard(
        "everything is switched on again by two",
        "reviews/stops.py",
        "    if row.lift_asked_by == person.public_id:",
        "    if False:",
        f"{STOPS} {MODEL}",
    ),
    Guard(
        "nobody confirms their own repair",
        "reviews/repairs.py",
        "    if repair.proposed_by == person.public_id:",
        "    if False:",
        REPAIRS,
    ),
    Guard(
        "nothing begins on a database that came back",
        "journal/epochs.py",
        "    if why():\n        raise Restored",
        "    why()",
        RESTORES,
    ),
    Guard(
        "two begin a new epoch",
        "reviews/restores.py",
        "    if epoch.asked_by == person.public_id:",
        "    if False:",
        RESTORES,
    ),
    # What agents send, and what wakes workers.
    Guard(
        "a key stands for one body",
        "agents/idempotency.py",
        "    if row.fingerprint != print_:",
        "    if False:",
        PROPOSE,
    ),
    Guard(
        "a stopped agent proposes nothing",
        "reviews/stops.py",
        "    if in_force(agent, thread, tool) is StopMode.STOPPED:",
        "    if False:",
        f"{STOP} {MODEL}",
    ),
    Guard(
        "a task uses up no other task's message",
        "journal/outbox.py",
        "    return not task or task.name == message.task",
        "    return True",
        OUTBOX,
    ),
    Guard(
        "who lost a message writes nothing",
        "journal/outbox.py",
        "        pk=message.pk, attempts=message.attempts, done_at__isnull=True",
        "        pk=message.pk, done_at__isnull=True",
        OUTBOX,
    ),
]
