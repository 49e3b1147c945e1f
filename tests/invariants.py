"""The invariants of the gate and the tests that prove them, by name. What an invariant
says is in the design's list; test_architecture.py checks that every test is there."""

from __future__ import annotations

ASKED = [
    *(f"I{number}" for number in range(1, 12)),
    *("I13", "I14", "I15", "I16", "I17", "I18", "I19", "I20"),
    *("I21", "I22", "I23", "I24", "I25", "I26", "I31", "I32", "I33", "I34"),
]

NAUGHTY = "tests/browser/test_naughty.py"
CRASH = "tests/journeys/test_crash.py"
POINTS = "tests/journeys/test_crash_points.py"
STALE = "tests/journeys/test_stale.py"
ONCE = "tests/journeys/test_exactly_once.py"
MODEL = "tests/journeys/test_model.py"
CLAIM = "tests/races/test_claim.py"
DECIDE = "tests/races/test_decide.py"
EXPIRE = "tests/races/test_expire.py"
PROPOSE = "tests/races/test_propose.py"
RECALL = "tests/races/test_recall.py"
CONSTRAINTS = "tests/reviews/models/test_constraints.py"
DECISIONS = "tests/reviews/decisions/test_decide.py"
RECORDING = "tests/reviews/executions/test_record.py"
REFUSING = "tests/reviews/executions/test_finish.py"
RUNNING = "tests/reviews/executions/test_run.py"
PROPOSALS = "tests/reviews/requests/test_proposals.py"
SWITCHES = "tests/races/test_switches.py"
STEP_UP = "tests/reviews/decisions/test_submission.py"
TIGHTENED = "tests/reviews/executions/test_rechecks.py"
TRANSITIONS = "tests/reviews/test_transitions.py"
WINDOWS = "tests/reviews/executions/test_windows.py"
AUTHORITY = "tests/security/test_authority.py"
BYPASS = "tests/security/test_bypass_matrix.py"
API = "tests/agents/api/test_proposals.py"

TESTS = {
    # A checkpoint is durable before the agent gets an id.
    "I1": [
        f"{PROPOSALS}::test_a_payment_waits_with_its_checkpoint_and_its_records",
        f"{CRASH}::test_a_web_process_killed_anywhere_leaves_all_or_nothing",
    ],
    # Canonical bytes and their hash never change.
    "I2": [
        f"{CONSTRAINTS}::test_rows_that_never_change_refuse_every_column_and_their_removal",
        f"{PROPOSALS}::test_the_stored_bytes_are_the_canonical_form_and_their_hash",
    ],
    # One automaton in one place; the database refuses any other step.
    "I3": [
        f"{TRANSITIONS}::test_legal_events_move_the_row_and_all_others_change_nothing",
        f"{TRANSITIONS}::test_every_operation_in_every_status_of_a_request",
        f"{TRANSITIONS}::test_every_operation_in_every_status_of_an_execution",
        f"{CONSTRAINTS}::test_the_database_refuses_every_step_that_is_no_edge",
        f"{CONSTRAINTS}::test_the_triggers_edges_are_the_tables_edges",
        f"{MODEL}::test_the_gate_and_the_automaton_never_differ",
    ],
    # One terminal decision a request.
    "I4": [f"{DECIDE}::test_of_many_simultaneous_deciders_exactly_one_wins"],
    # A decision is on a status, a version, a hash and a deadline.
    "I5": [
        f"{DECIDE}::test_a_revision_right_before_the_lock_makes_the_verdict_stale",
        f"{EXPIRE}::test_a_deadline_that_passes_during_the_decision_refuses_it",
        f"{DECISIONS}::test_an_old_version_cannot_be_decided",
    ],
    # Silence is a no.
    "I6": [
        f"{EXPIRE}::test_at_the_deadline_a_request_is_decided_or_expires_never_both",
        f"{CRASH}::test_timers_killed_before_their_commit_do_their_work_once",
    ],
    # Deny wins.
    "I7": [
        f"{DECIDE}::test_a_no_beside_two_simultaneous_approvals",
        f"{DECIDE}::test_a_rejection_right_before_the_lock_is_final",
        f"{RECALL}::test_a_rejection_in_the_window_against_its_end",
    ],
    # A late vote is a record without effect.
    "I8": [
        f"{DECIDE}::test_two_of_three_simultaneous_approvals_are_enough",
        f"{DECISIONS}::test_after_the_deadline_a_verdict_has_no_effect",
        f"{DECISIONS}::test_a_refused_decision_is_a_log_record",
    ],
    # Neither the proposer's owner nor its chain decides.
    "I9": [
        f"{DECISIONS}::test_the_agents_owner_cannot_decide",
        f"{DECISIONS}::test_who_is_named_in_the_chain_cannot_decide",
        "tests/agents/test_reversals.py::test_who_proposed_it_does_not_decide_it",
        "tests/reviews/executions/test_reconcile.py::test_nobody_settles_their_own_run",
    ],
    # One vote a human over all steps; quorum is counted under a lock.
    "I10": [
        f"{DECIDE}::test_one_person_in_two_tabs_votes_once",
        f"{DECIDE}::test_a_second_vote_waits_for_the_first_and_counts_it",
        "tests/reviews/decisions/test_case.py::test_who_filled_a_step_cannot_fill_another_one",
    ],
    # The policy that was asked under says how many; a tightened one, or an approver
    # without authority, blocks right before the effect.
    "I11": [
        f"{TIGHTENED}::test_the_policy_it_was_asked_under_says_how_many_must_agree",
        f"{TIGHTENED}::test_what_changed_since_the_approval_blocks_the_effect",
        f"{TIGHTENED}::test_what_takes_no_authority_away_blocks_nothing",
        f"{TIGHTENED}::"
        "test_a_supervisor_who_is_a_reviewer_by_now_fills_no_supervisors_place",
        f"{TIGHTENED}::test_whoever_filled_a_step_of_an_earlier_version_counts_too",
        f"{TIGHTENED}::test_an_agent_redeems_nothing_that_changed_since",
        f"{REFUSING}::test_a_tightened_policy_blocks_the_effect",
        f"{REFUSING}::test_an_approver_who_lost_the_role_blocks_the_effect",
    ],
    # An evaluation that fails blocks, and says so.
    "I13": [
        "tests/policies/test_evaluation.py::"
        "test_a_rule_that_cannot_be_evaluated_blocks_by_name",
        "tests/policies/test_evaluation.py::test_a_missing_fact_never_opens_the_gate",
    ],
    # An unknown tool, field or type blocks.
    "I14": [
        f"{PROPOSALS}::test_an_unknown_tool_is_blocked_and_kept",
        f"{PROPOSALS}::test_an_unknown_argument_is_refused_with_its_path",
        f"{API}::test_a_wrong_field_is_named",
    ],
    # What an agent says only raises the tier.
    "I15": [
        "tests/policies/test_evaluation_properties.py::"
        "test_nothing_an_agent_says_of_itself_lowers_the_tier",
        f"{AUTHORITY}::test_an_agents_revision_does_not_undo_an_escalation",
    ],
    # A fresh step-up: for this request, version, hash and verdict, used once.
    "I16": [
        f"{STEP_UP}::test_a_proof_for_anything_else_is_none",
        f"{STEP_UP}::test_a_proof_that_is_old_or_of_tomorrow_is_none",
        f"{STEP_UP}::test_without_a_proof_nothing_is_decided",
        f"{STEP_UP}::test_whoever_has_no_password_cannot_prove_anything",
        f"{STEP_UP}::test_a_token_never_suffices",
        f"{STEP_UP}::test_it_is_kept_while_something_else_is_wrong_and_used_once",
        f"{STEP_UP}::test_an_edit_that_comes_to_need_a_proof_asks_for_one",
    ],
    # An agent's key decides nothing.
    "I17": [
        f"{BYPASS}::test_agents_keys_decide_nothing",
        f"{API}::test_an_agents_key_opens_no_route_of_people",
    ],
    # No effect without an approval of exactly these bytes.
    "I18": [
        f"{REFUSING}::test_no_bytes_but_the_approved_ones_run",
        f"{CRASH}::test_a_forged_message_has_no_effect",
        f"{MODEL}::test_the_gate_and_the_automaton_never_differ",
    ],
    # At most one effect a request; exactly one where the provider has keys.
    "I19": [
        f"{CRASH}::test_a_worker_killed_anywhere_never_doubles_or_loses_an_effect",
        f"{POINTS}::test_what_dies_half_way_is_there_once_or_not_at_all",
        f"{CLAIM}::test_of_many_workers_one_performs_the_effect",
        f"{CLAIM}::test_who_slept_before_the_effect_does_not_begin_it",
        f"{MODEL}::test_the_gate_and_the_automaton_never_differ",
    ],
    # What cannot be known is unknown: never tried again, never failed.
    "I20": [
        f"{CRASH}::test_a_worker_killed_anywhere_never_doubles_or_loses_an_effect",
        f"{RUNNING}::test_a_lapsed_lease_of_an_opaque_tool_is_unknown",
    ],
    # The time to execute is apart from the time to decide.
    "I21": [
        f"{WINDOWS}::test_who_approves_in_the_last_second_gives_the_whole_window",
        f"{WINDOWS}::test_a_recall_window_takes_nothing_of_it",
        f"{WINDOWS}::test_what_is_still_queued_after_it_is_refused",
        f"{WINDOWS}::test_nothing_is_tried_again_after_it",
        f"{WINDOWS}::test_the_grant_of_a_retry_ends_when_it_would_have",
        f"{WINDOWS}::test_a_window_that_ends_during_the_checks_is_over",
    ],
    # Every write after a claim is under its fence.
    "I22": [
        f"{RECORDING}::test_a_stale_fence_cannot_record",
        f"{CLAIM}::test_a_record_against_a_take_over",
        f"{CLAIM}::test_who_slept_past_the_lease_writes_nothing",
        f"{STALE}::test_what_a_sleeper_still_writes_is_refused",
        f"{STALE}::test_an_agent_that_slept_reports_under_an_old_fence",
    ],
    # Keys: the provider's is a function of id and hash, the client's one answer.
    "I23": [
        "tests/reviews/grants/test_grants.py::"
        "test_the_providers_key_is_a_function_of_proposal_and_bytes",
        f"{PROPOSE}::test_one_key_at_the_same_moment_is_one_proposal",
        f"{PROPOSE}::test_one_key_at_the_same_moment_over_http",
        f"{PROPOSE}::test_other_bodies_under_one_key_at_the_same_moment",
        f"{PROPOSE}::test_an_answer_that_is_not_there_yet_is_in_progress",
        f"{PROPOSE}::test_a_replay_after_thirty_days_is_the_same_answer",
    ],
    # A stop between claim and effect is honoured.
    "I24": [
        f"{CLAIM}::test_a_stop_between_claim_and_effect_is_honoured",
        f"{CLAIM}::test_after_a_stop_is_acknowledged_nothing_begins",
        "tests/races/test_stop.py::test_a_stop_against_verdicts_claims_and_proposals",
        f"{SWITCHES}::test_a_stop_after_the_claim_means_no_effect",
        f"{SWITCHES}::test_a_pause_after_the_claim_keeps_it_for_later",
        f"{SWITCHES}::test_an_agent_that_redeems_meanwhile_gets_nothing_to_do",
        f"{SWITCHES}::test_a_stop_at_the_last_moment_of_a_redeem",
        f"{SWITCHES}::test_a_reviewer_revoked_after_the_claim_means_no_effect",
    ],
    # The broker may be emptied at any time.
    "I25": [
        f"{CRASH}::test_an_emptied_broker_loses_nothing",
        f"{CRASH}::test_a_forged_message_has_no_effect",
        f"{ONCE}::test_the_worker_is_killed_and_the_effect_stays_one",
    ],
    # A change and its record are one transaction, and the log has no gap.
    "I26": [
        f"{TRANSITIONS}::test_without_its_record_nothing_is_changed",
        f"{CRASH}::test_a_web_process_killed_anywhere_leaves_all_or_nothing",
        f"{ONCE}::test_a_payment_waits_is_approved_happens_once_and_is_logged_step_by_step",
    ],
    # What is shown is computed from the stored bytes; an agent's text is never markup.
    "I31": [
        "tests/reviews/presenters/test_present.py::test_every_leaf_stands_in_a_row",
        "tests/reviews/presenters/test_present.py::test_another_leaf_gives_another_text",
        "tests/desk/templatetags/test_inert.py::test_any_text_stays_text",
        "tests/security/test_untrusted_everywhere.py::"
        "test_it_is_shown_and_does_nothing",
        f"{NAUGHTY}::test_everything_that_is_naughty_is_text",
        f"{NAUGHTY}::test_every_view_shows_them_as_text",
        "tests/browser/test_naughty_rows.py::"
        "test_every_row_and_every_file_shows_them_as_text",
        "tests/browser/test_lies.py::test_whatever_it_says_the_facts_are_the_same",
        "tests/browser/test_same_facts.py::test_the_same_action_reads_the_same_everywhere",
        "tests/browser/test_commands.py::test_no_command_passes_in_silence",
        "tests/reviews/presenters/test_everything.py::"
        "test_another_leaf_gives_another_page",
    ],
    # No GET changes state; every POST of a page needs its token.
    "I32": [
        f"{BYPASS}::test_nobody_reaches_what_is_not_theirs",
        "tests/security/test_unsafe_requests.py::test_reading_changes_nothing",
        "tests/security/test_unsafe_requests.py::test_forged_writes_are_refused",
        "tests/desk/request/test_views.py::test_reading_changes_nothing",
        "tests/desk/request/test_views.py::test_a_decision_needs_the_forms_token",
    ],
    # Nothing outside a person's permissions is observable.
    "I33": [
        f"{BYPASS}::test_nobody_reaches_what_is_not_theirs",
        "tests/desk/request/test_views.py::"
        "test_a_stranger_gets_the_same_as_for_nothing",
        "tests/desk/request/test_preview.py::test_a_stranger_finds_nothing",
        "tests/security/test_leaks.py::test_a_second_approver_does_not_see_the_first",
        "tests/security/test_leaks.py::test_the_owner_never_learns_who_decided",
    ],
    # No page asks anything of another place.
    "I34": [f"{NAUGHTY}::test_no_page_asks_anything_of_another_place"],
}
