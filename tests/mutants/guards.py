"""The guards without which an effect could happen twice, without authority, or after
somebody said no, or one person could act or see in another's place. Each is taken out
alone, and the tests it names must notice (T1)."""

from __future__ import annotations

from dataclasses import dataclass

from .removals import (
    ALWAYS,
    NEVER,
    NOTHING,
    UNHEEDED,
    Condition,
    InText,
    Removal,
    Value,
    WithKeyword,
    WithoutKeyword,
    WithoutMethod,
    WithoutOperand,
)

INHERITED = "tests/reviews/grants/test_uncertain.py"
MODEL = "tests/journeys/test_model.py"
EXECUTIONS = "tests/reviews/executions tests/reviews/executions/test_claims.py"
DECISIONS = "tests/reviews/decisions/test_decide.py"
AUTHORITY = "tests/security/test_authority.py"
CARE = "tests/reviews/desk/request/test_commit.py"
CASES = "tests/reviews/decisions/test_case.py"
CLAIM = "tests/races/test_claim.py"
DEADLINES = "tests/reviews/test_deadlines.py"
DECIDE = "tests/races/test_decide.py"
EXPIRE = "tests/races/test_expire.py"
PROPOSE = "tests/races/test_propose.py"
OUTBOX = "tests/journal/test_outbox.py"
STEP_UP = "tests/reviews/decisions/test_submission.py"
STOP = "tests/races/test_stop.py"
REDEEM = "tests/races/test_redeem.py"
REDEEM_KEYS = "tests/reviews/executions/test_redeem_keys.py"
PERMISSIONS = "tests/reviews/test_permissions.py"
REPAIRS = "tests/agents/test_repairs.py"
RESTORES = "tests/reviews/test_recovery.py"
STOPS = "tests/reviews/stops/test_stops.py"
STREAMS = "tests/hitl/live/test_event_stream.py"
VOTES = "tests/reviews/executions/test_votes_counted.py"


@dataclass(frozen=True)
class Guard:
    """One statement of the product, and what it reads as when the guard is gone."""

    name: str
    file: str
    function: str  # its qualified name; "" for the module
    marker: str  # `# guard: <marker>` on or right above the statement
    removal: Removal
    noticed_by: str  # a file of tests, or one test of it

    def __str__(self) -> str:
        return self.name


GUARDS = [
    # Who may speak, on what, and until when.
    Guard(
        "the request is locked before votes are counted",
        "reviews/locks.py",
        "_select_locked_requests",
        "request-lock",
        WithoutMethod("select_for_update"),
        f"{DECIDE}::test_two_of_two_simultaneous_approvals_are_enough",
    ),
    Guard(
        "a row that is no longer as read is not written",
        "journal/writes.py",
        "_check_count",
        "as-read",
        UNHEEDED,
        EXPIRE,
    ),
    Guard(
        "a verdict names the version and bytes that were seen",
        "reviews/decisions/checks.py",
        "_check_current",
        "seen-version",
        NEVER,
        DECISIONS,
    ),
    Guard(
        "nothing is decided after the deadline",
        "reviews/decisions/checks.py",
        "check_still_open",
        "deadline",
        WithoutOperand("overdue"),
        f"{DECISIONS} {MODEL}",
    ),
    Guard(
        "the deadline is checked by the write itself",
        "reviews/decisions/tally.py",
        "",
        "deadline-in-write",
        WithoutKeyword("condition"),
        EXPIRE,
    ),
    Guard(
        "nothing is decided under a stop",
        "reviews/decisions/checks.py",
        "_check_current",
        "decide-stop",
        NEVER,
        f"{STOP} {MODEL}",
    ),
    Guard(
        "no one decides their own",
        "reviews/permissions.py",
        "check_can_decide",
        "own-request",
        NEVER,
        DECISIONS,
    ),
    Guard(
        "who escalated waits for others",
        "reviews/permissions.py",
        "check_can_decide",
        "own-escalation",
        NEVER,
        f"{DECISIONS} {MODEL}",
    ),
    Guard(
        "one vote a human over all steps",
        "reviews/permissions.py",
        "check_can_decide",
        "one-vote",
        WithoutOperand("carried"),
        CASES,
    ),
    Guard(
        "a supervisor's step is a supervisor's",
        "reviews/permissions.py",
        "check_can_decide",
        "supervisor-step",
        NEVER,
        f"{DECISIONS} {MODEL}",
    ),
    Guard(
        "administrators and auditors never decide",
        "reviews/permissions.py",
        "find_deciding_role",
        "never-decide",
        WithoutOperand("roles & NEVER_DECIDE"),
        PERMISSIONS,
    ),
    Guard(
        "nobody approves above their ceiling",
        "reviews/permissions.py",
        "check_vote_counts",
        "person-ceiling",
        NEVER,
        DECISIONS,
    ),
    Guard(
        "every step has all its people",
        "reviews/quorum.py",
        "is_complete",
        "all-steps",
        Value("True"),
        f"{DECISIONS} {MODEL}",
    ),
    Guard(
        "an edit does not undo a colleague's escalation",
        "reviews/decisions/modify.py",
        "_check_may_lower_tier",
        "edit-lowers",
        NEVER,
        AUTHORITY,
    ),
    Guard(
        "an edit above its editor's ceiling is not their approval",
        "reviews/decisions/modify.py",
        "_exceeds_editor",
        "edit-ceiling",
        NEVER,
        DECISIONS,
    ),
    Guard(
        "nobody hands up what then nobody could decide",
        "reviews/decisions/verdicts.py",
        "_check_enough_people",
        "escalated-in-vain",
        NEVER,
        "tests/reviews/governance/test_voters.py",
    ),
    Guard(
        "a forbidden edit is refused",
        "reviews/decisions/modify.py",
        "assess_edit",
        "edit-blocked",
        NEVER,
        DECISIONS,
    ),
    Guard(
        "the highest tier needs a fresh proof",
        "reviews/decisions/checks.py",
        "build_decision_context",
        "step-up",
        NEVER,
        f"{DECISIONS} {STEP_UP}",
    ),
    Guard(
        "a proof is for this verdict alone",
        "reviews/decisions/case.py",
        "check_step_up",
        "step-up-bound",
        WithoutOperand("not proof.holds(said.bound, now)"),
        STEP_UP,
    ),
    Guard(
        "nothing is recalled after its window",
        "reviews/decisions/recall.py",
        "apply_recall",
        "recall-window",
        NEVER,
        DEADLINES,
    ),
    Guard(
        "only what is overdue expires",
        "reviews/deadlines.py",
        "expire_chunk",
        "expire-overdue",
        WithoutKeyword("expires_at__lte"),
        f"{EXPIRE} {MODEL}",
    ),
    Guard(
        "a recall window is waited for",
        "reviews/deadlines.py",
        "close_recall_windows",
        "recall-over",
        WithoutKeyword("recall_until__lte"),
        DEADLINES,
    ),
    Guard(
        "the votes are counted again when a recall window closes",
        "reviews/deadlines.py",
        "close_recall_windows",
        "window-votes",
        Value("set()"),
        VOTES,
    ),
    Guard(
        "the votes are counted again before the effect",
        "reviews/executions/rechecks.py",
        "_find_vote_refusal",
        "effect-votes",
        NEVER,
        VOTES,
    ),
    Guard(
        "each vote names the bytes that run",
        "reviews/executions/rechecks.py",
        "_find_shortfall",
        "votes-bytes",
        NEVER,
        VOTES,
    ),
    # What runs, once, and only as it was allowed.
    Guard(
        "an execution is locked before it is claimed",
        "reviews/locks.py",
        "_lock_with_grant",
        "execution-lock",
        WithoutMethod("select_for_update"),
        CLAIM,
    ),
    Guard(
        "a held lease is not taken",
        "reviews/executions/claims.py",
        "_claim_lapsed",
        "held-lease",
        WithoutOperand("execution.lease_until > now"),
        f"{EXECUTIONS} {MODEL}",
    ),
    Guard(
        "an opaque tool is tried once",
        "reviews/executions/claims.py",
        "_claim_lapsed",
        "opaque-once",
        WithoutOperand(
            "approved_tool.load_execution_class(execution) is not ExecutionClass.OPAQUE"
        ),
        f"{EXECUTIONS} {MODEL}",
    ),
    Guard(
        "nothing begins after its window",
        "reviews/executions/claims.py",
        "_claim_queued",
        "claim-window",
        NEVER,
        f"{EXECUTIONS} {MODEL}",
    ),
    Guard(
        "no worker takes what the agent performs",
        "reviews/executions/claims.py",
        "_claim_queued",
        "claim-ours",
        WithoutOperand("not ours"),
        f"{EXECUTIONS} {MODEL}",
    ),
    Guard(
        "a switch is looked at when it is claimed",
        "reviews/executions/claims.py",
        "_claim_queued",
        "claim-switches",
        NEVER,
        f"{EXECUTIONS} {MODEL}",
    ),
    Guard(
        "who slept too long begins nothing",
        "reviews/executions/leases.py",
        "_mark_begun",
        "begin-in-time",
        UNHEEDED,
        CLAIM,
    ),
    Guard(
        "only the holder of the fence writes",
        "reviews/executions/leases.py",
        "load_fenced_execution",
        "fence",
        WithoutOperand("execution.fence != fence"),
        f"{EXECUTIONS} {MODEL}",
    ),
    Guard(
        "what may have happened is looked up first",
        "reviews/executions/run.py",
        "look_up_earlier_attempts",
        "look-up-first",
        ALWAYS,
        f"{EXECUTIONS} {MODEL}",
    ),
    Guard(
        "what was unknown once is not taken for untouched",
        "reviews/executions/claims.py",
        "is_untouched",
        "unknown-once",
        WithoutOperand("not (doubted and can_look)"),
        "tests/reviews/executions/test_reconcile.py",
    ),
    Guard(
        "what a service may still be at is looked up a lease later",
        "reviews/executions/record.py",
        "_compute_next_ask",
        "lease-later",
        Value("due"),
        EXECUTIONS,
    ),
    Guard(
        "an agent's word alone empties no sum",
        "reviews/executions/record.py",
        "_record_failure",
        "agent-word",
        Value("facts.mark_effect_denied(proposal.pk)"),
        "tests/reviews/executions/test_sums.py",
    ),
    Guard(
        "what may have run leaves the sums only when it is denied",
        "policies/facts.py",
        "release_many",
        "ran-weighs",
        WithoutKeyword("ran"),
        "tests/policies/test_facts.py tests/reviews/executions/test_sums.py",
    ),
    Guard(
        "what failed in an attempt that never ended is its outcome",
        "reviews/executions/run.py",
        "is_effect_denied",
        "attempt-open",
        Value("True"),
        EXECUTIONS,
    ),
    Guard(
        "what waits to be tried once more is taken back too",
        "reviews/grants/grants.py",
        "revoke_queued",
        "revoke-queued",
        WithKeyword("grant__status='live'"),
        f"{STOPS} tests/reviews/grants/test_grants.py {MODEL}",
    ),
    Guard(
        "what was found is not done again",
        "reviews/executions/run.py",
        "_attempt_effect",
        "found-once",
        NEVER,
        f"{EXECUTIONS} {MODEL}",
    ),
    Guard(
        "the stored bytes are the granted ones",
        "reviews/executions/rechecks.py",
        "_find_bytes_refusal",
        "stored-bytes",
        NEVER,
        EXECUTIONS,
    ),
    Guard(
        "the stored bytes are those that the log records",
        "reviews/executions/rechecks.py",
        "_find_bytes_refusal",
        "logged-bytes",
        NEVER,
        VOTES,
    ),
    Guard(
        "a policy tightened since blocks",
        "reviews/executions/rechecks.py",
        "_find_shortfall",
        "tightened-tier",
        NEVER,
        "tests/reviews/executions/test_rechecks.py",
    ),
    Guard(
        "who agreed is enough for the policy of now",
        "reviews/executions/rechecks.py",
        "_find_shortfall",
        "tightened-votes",
        Value("None"),
        "tests/reviews/executions/test_rechecks.py",
    ),
    Guard(
        "an approver without authority blocks",
        "reviews/grants/approvers.py",
        "are_approvers_valid",
        "approver-valid",
        NEVER,
        EXECUTIONS,
    ),
    Guard(
        "a record that changed since blocks",
        "reviews/executions/rechecks.py",
        "_find_state_refusal",
        "record-changed",
        ALWAYS,
        EXECUTIONS,
    ),
    Guard(
        "a stop between claim and effect is honoured",
        "reviews/executions/run.py",
        "_perform_effect",
        "at-last",
        WithoutOperand("rechecks.find_final_refusal(claim.execution)"),
        CLAIM,
    ),
    Guard(
        "what a stop took back once is asked anew",
        "reviews/stops/stops.py",
        "",
        "stopped-since",
        InText("mode = 'stopped' AND at >=", "false AND at >="),
        STOPS,
    ),
    Guard(
        "a vote that was revoked once is none",
        "reviews/grants/approvers.py",
        "_is_revoked",
        "revoked-vote",
        WithoutOperand("vote.at is not None and at >= vote.at"),
        "tests/reviews/decisions/test_revoke.py",
    ),
    Guard(
        "a window that ends during the checks is over",
        "reviews/executions/rechecks.py",
        "find_final_refusal",
        "last-window",
        WithoutOperand("_find_window_refusal(is_open)"),
        EXECUTIONS,
    ),
    Guard(
        "a restore that is noticed during the checks lets nothing begin",
        "reviews/executions/rechecks.py",
        "find_final_refusal",
        "restored-since",
        NOTHING,
        RESTORES,
    ),
    Guard(
        "an approver who goes during the checks is gone",
        "reviews/executions/rechecks.py",
        "find_final_refusal",
        "last-approvers",
        WithoutOperand("_find_approver_refusal(execution, seen, deciders)"),
        EXECUTIONS,
    ),
    Guard(
        "a grant that is not taken says nothing of an earlier attempt",
        "reviews/executions/run.py",
        "_perform_effect",
        "earlier-open",
        Condition("outcome.this_attempt_only and not claim.untouched"),
        EXECUTIONS,
    ),
    Guard(
        "what a late report says happened is not done again",
        "reviews/executions/claims.py",
        "find_may_have_run_reason",
        "late-report",
        NEVER,
        "tests/reviews/executions/test_settle.py",
    ),
    Guard(
        "what was changed since a restore is asked of people",
        "reviews/grants/uncertain.py",
        "find_uncertain_outcome",
        "revised-since",
        Value("RESTORED"),
        INHERITED,
    ),
    Guard(
        "nothing expires while two people have not looked",
        "reviews/deadlines.py",
        "expire_chunk",
        "expire-epoch",
        NOTHING,
        INHERITED,
    ),
    Guard(
        "an effect that goes elsewhere is another one",
        "reviews/executions/rechecks.py",
        "_find_tool_change",
        "elsewhere",
        NEVER,
        "tests/reviews/executions/test_rechecks.py",
    ),
    Guard(
        "a token says what its row says",
        "reviews/grants/tokens.py",
        "_load_by_signed_token",
        "token-row",
        NEVER,
        "tests/reviews/grants/test_tokens.py",
    ),
    Guard(
        "a failure is retried inside its window only",
        "reviews/executions/settle.py",
        "_check_may_retry",
        "retry-window",
        NEVER,
        f"{EXECUTIONS} {MODEL}",
    ),
    Guard(
        "a claim is given again to the call that made it only",
        "reviews/executions/claims.py",
        "is_claim_of_key",
        "redeem-key",
        Value("True"),
        f"{REDEEM_KEYS} {REDEEM}",
    ),
    Guard(
        "what a repeated call was given is not taken back",
        "reviews/executions/record.py",
        "release_claim",
        "redeem-begun",
        NEVER,
        REDEEM,
    ),
    Guard(
        "a page of somebody else says nothing of one's own screen",
        "reviews/desk/request/commit.py",
        "find_page_on_screen",
        "own-screen",
        WithoutOperand("not found.is_for(loaded.person.public_id, loaded.request.pk)"),
        CARE,
    ),
    Guard(
        "a verdict comes from one's own page of this request",
        "reviews/desk/request/commit.py",
        "attach_page_evidence",
        "own-page",
        NEVER,
        CARE,
    ),
    # What takes two people.
    Guard(
        "everything is switched on again by two",
        "reviews/stops/stops.py",
        "lift_stop",
        "lift-by-two",
        NEVER,
        f"{STOPS} {MODEL}",
    ),
    Guard(
        "nobody confirms their own repair",
        "reviews/executions/repairs.py",
        "check_may_confirm",
        "own-repair",
        NEVER,
        REPAIRS,
    ),
    Guard(
        "nothing begins on a database that came back",
        "journal/restore_epochs.py",
        "check_not_restored",
        "epoch",
        UNHEEDED,
        RESTORES,
    ),
    Guard(
        "two begin a new epoch",
        "reviews/recovery.py",
        "confirm_restore",
        "epoch-by-two",
        NEVER,
        RESTORES,
    ),
    # What agents send, and what wakes workers.
    Guard(
        "a key stands for one body",
        "agents/idempotency.py",
        "find_stored_answer",
        "key-body",
        NEVER,
        PROPOSE,
    ),
    Guard(
        "an agent supersedes only its own",
        "reviews/requests/proposals.py",
        "_supersede_proposal",
        "own-superseded",
        WithoutOperand("request.proposal.agent != agent"),
        "tests/reviews/requests/test_proposals.py",
    ),
    Guard(
        "a stopped agent proposes nothing",
        "reviews/stops/stops.py",
        "check_may_propose",
        "propose-stop",
        NEVER,
        f"{STOP} {MODEL}",
    ),
    Guard(
        "a task uses up no other task's message",
        "journal/outbox.py",
        "_is_own_message",
        "own-message",
        Value("True"),
        OUTBOX,
    ),
    Guard(
        "who lost a message writes nothing",
        "journal/outbox.py",
        "_select_claimed",
        "message-fence",
        WithoutKeyword("attempts"),
        OUTBOX,
    ),
    # What an open page hears.
    Guard(
        "one person has only so many streams",
        "hitl/live/event_stream.py",
        "EventStreams._counted",
        "streams-each",
        WithoutOperand("self._each[person] <= MOST_EACH"),
        f"{STREAMS}::test_one_person_has_so_many_streams_and_leaves_room_for_others",
    ),
    Guard(
        "a stream tells of what its person may see",
        "reviews/desk/live/subscription.py",
        "build_viewer",
        "stream-visible",
        Value("visibility.ApprovalRequest.objects.filter(pk__in=wanted)"),
        f"{STREAMS}::test_what_one_may_not_see_is_not_told",
    ),
]
