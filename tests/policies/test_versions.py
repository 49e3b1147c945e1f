"""Policy versions: immutable, one active, two administrators, and enough people."""

from __future__ import annotations

import threading
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, IntegrityError, connection, transaction
from guardian.shortcuts import assign_perm, remove_perm

from journal.errors import IllegalTransition, NotFound, NotPermitted, PolicyViolation
from journal.models import LogRecord
from policies import active, versions
from policies.choices import Role
from policies.documents import InvalidPolicy
from policies.models import PolicyVersion, Queue, Tool
from tests import factories
from tests.policies import builders, store

pytestmark = pytest.mark.django_db


@pytest.fixture
def people():
    return factories.cast()


def draft(people, data=None, author="adam"):
    """A saved draft whose queues wait for their people."""
    version = versions.save_draft(
        text_or_mapping=data or builders.data(), author=people[author]
    )
    versions.prepare_queues(names=version.document["queues"])
    return version


def admit(people, *names):
    for queue in Queue.objects.all():
        for name in names:
            assign_perm("policies.decide", people[name], queue)


def kinds():
    return list(LogRecord.objects.order_by("pk").values_list("kind", flat=True))


def test_a_draft_does_not_rule(people):
    version = versions.save_draft(
        text_or_mapping=builders.data(), author=people["adam"]
    )
    assert (version.number, version.status) == (1, "draft")
    assert active.find_active_policy() is None
    assert Tool.objects.count() == 0
    assert not Queue.objects.exists()
    assert kinds() == ["policy.saved"]


def test_people_are_admitted_to_a_queue_of_a_draft_by_name(people):
    versions.save_draft(text_or_mapping=builders.data(), author=people["adam"])
    call_command("admit", "rita", "--queue", "money", stdout=StringIO())
    assert list(Queue.objects.values_list("name", flat=True)) == ["money"]
    with pytest.raises(CommandError, match="no queue nowhere, and no draft has one"):
        call_command("admit", "rita", "--queue", "nowhere", stdout=StringIO())


def test_a_draft_renames_no_queue_that_there_is(people):
    version = factories.policy(people, builders.data())
    title = Queue.objects.get(name="money").title
    data = {**builders.data(), "queues": {"money": "Gone", "other": "Other"}}
    versions.save_draft(text_or_mapping=data, author=people["adam"])
    versions.prepare_queues(names=["money", "other"])
    assert Queue.objects.get(name="money").title == title
    assert version.status == "active"


def test_text_and_variables_are_read_when_it_is_saved(people):
    version = versions.save_draft(
        text_or_mapping=store.text(), author=people["adam"], variables=store.VARIABLES
    )
    assert active.load_document(version) == store.shipped()
    with pytest.raises(InvalidPolicy):
        versions.save_draft(text_or_mapping="name: x", author=people["adam"])
    assert PolicyVersion.objects.count() == 1


def test_a_second_administrator_puts_it_in_force(people):
    version = draft(people)
    admit(people, "rita", "sue", "sam")
    activated = versions.activate_version(version_id=version.pk, by=people["alma"])
    assert activated.status == "active"
    assert activated.activated_by == people["alma"]
    assert activated.activated_at is not None
    assert store.load_active_policy() == activated
    assert Tool.objects.get().name == "pay"
    assert kinds() == ["policy.saved", "policy.activated"]


def test_the_author_cannot_activate_it(people):
    version = draft(people)
    admit(people, "rita", "sue", "sam")
    with pytest.raises(PolicyViolation):
        versions.activate_version(version_id=version.pk, by=people["adam"])
    assert active.find_active_policy() is None
    with pytest.raises(IntegrityError), transaction.atomic():
        PolicyVersion.objects.filter(pk=version.pk).update(
            status="active",
            activated_by=people["adam"],
            activated_at=version.created_at,
        )


@pytest.mark.parametrize("name", ["rita", "sue", "otto", "owen"])
def test_only_administrators_write_and_activate(people, name):
    with pytest.raises(NotPermitted):
        draft(people, author=name)
    version = draft(people)
    with pytest.raises(NotPermitted):
        versions.activate_version(version_id=version.pk, by=people[name])


def test_an_administrator_who_left_does_nothing(people):
    people["adam"].is_active = False
    with pytest.raises(NotPermitted):
        draft(people)


def test_the_next_version_retires_the_one_before(people):
    first = factories.policy(people, builders.data())
    second = factories.policy(people, builders.data(title="Pay somebody"))
    first.refresh_from_db()
    assert (first.status, second.status) == ("retired", "active")
    assert (first.number, second.number) == (1, 2)
    assert store.load_active_policy() == second
    assert kinds()[-2:] == ["policy.retired", "policy.activated"]


def test_a_version_is_activated_once(people):
    version = factories.policy(people, builders.data())
    with pytest.raises(IllegalTransition):
        versions.activate_version(version_id=version.pk, by=people["alma"])
    factories.policy(people, builders.data())
    with pytest.raises(IllegalTransition):
        versions.activate_version(version_id=version.pk, by=people["alma"])
    with pytest.raises(NotFound):
        versions.activate_version(version_id=0, by=people["alma"])


@pytest.mark.parametrize("change", [{"document": {}}, {"digest": "x"}, {"number": 9}])
def test_what_a_version_says_never_changes(people, change):
    draft(people)
    with pytest.raises(DatabaseError), transaction.atomic():
        PolicyVersion.objects.update(**change)


def test_an_active_policy_is_read_with_one_query(people, django_assert_num_queries):
    factories.policy(people, builders.data())
    document = active.load_document(store.load_active_policy())
    with django_assert_num_queries(1):
        version = store.load_active_policy()
    with django_assert_num_queries(0):
        assert active.load_document(version) is document


# Enough people [I12].
def shortage(people, found):
    with pytest.raises(InvalidPolicy) as refused:
        versions.activate_version(version_id=found.pk, by=people["alma"])
    assert active.find_active_policy() is None
    return {(e["path"], e["message"]) for e in refused.value.errors}


def test_a_policy_that_nobody_could_satisfy_is_refused(people):
    version = draft(people)
    assert shortage(people, version) == {
        ("queues.money", "approve for pay: 0 of 1 people can decide here"),
        (
            "queues.money",
            "escalate for pay: 0 of 2 supervisors can decide here",
        ),
    }
    admit(people, "rita", "tom", "sue")
    assert shortage(people, version) == {
        (
            "queues.money",
            "escalate for pay: 1 of 2 supervisors can decide here",
        )
    }
    admit(people, "sam")
    versions.activate_version(version_id=version.pk, by=people["alma"])


def test_supervisors_stand_in_for_reviewers(people):
    version = draft(people)
    admit(people, "sue", "sam")
    versions.activate_version(version_id=version.pk, by=people["alma"])


def test_those_who_never_decide_and_those_who_left_do_not_count(people):
    version = draft(people)
    admit(people, "sue", "sam", "adam", "otto", "owen")
    factories.person("both", Role.SUPERVISOR).groups.add(*people["adam"].groups.all())
    people["sam"].is_active = False
    people["sam"].save()
    assert shortage(people, version) == {
        (
            "queues.money",
            "escalate for pay: 1 of 2 supervisors can decide here",
        )
    }


def test_a_queue_that_only_a_rule_names_needs_people_too(people):
    elsewhere = builders.rule(tier="approve", queue="other")
    version = draft(people, builders.data({"rules": [elsewhere]}))
    admit(people, "rita", "sue", "sam")
    remove_perm("policies.decide", people["sue"], Queue.objects.get(name="other"))
    assert shortage(people, version) == {
        (
            "queues.other",
            "escalate for pay: 1 of 2 supervisors can decide here",
        )
    }


def test_a_step_that_a_rule_adds_needs_people_too(people):
    more = builders.rule(tier="approve", step={"role": "supervisor", "required": 1})
    twice = builders.rule(
        "b.rule", tier="approve", step={"role": "supervisor", "required": 3}
    )
    version = draft(people, builders.data({"rules": [more, twice]}))
    admit(people, "rita", "sue", "sam")
    assert shortage(people, version) == {
        (
            "queues.money",
            "approve for pay: 2 of 3 supervisors can decide here",
        ),
        (
            "queues.money",
            "escalate for pay: 2 of 5 supervisors can decide here",
        ),
    }


def test_a_role_may_be_admitted_as_a_whole(people):
    version = draft(people)
    group = people["sue"].groups.get()
    for queue in Queue.objects.all():
        assign_perm("policies.decide", group, queue)
    versions.activate_version(version_id=version.pk, by=people["alma"])


def test_the_shipped_policy_needs_the_cast_of_the_demo(people):
    assert factories.policy(people, store.shipped().model_dump(
        mode="json", by_alias=True)).status == "active"  # fmt: skip
    assert Tool.objects.count() == 9


@pytest.mark.django_db(transaction=True)
def test_of_two_activations_at_once_both_rule_in_turn():
    people = factories.cast()
    drafts = [draft(people), draft(people, builders.data(title="Pay somebody"))]
    admit(people, "rita", "sue", "sam")
    failed = []

    def activate(version):
        try:
            versions.activate_version(version_id=version.pk, by=people["alma"])
        except Exception as error:
            failed.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=activate, args=(pk,)) for pk in drafts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert sorted(PolicyVersion.objects.values_list("status", flat=True)) == [
        "active",
        "retired",
    ]


@pytest.mark.parametrize(
    "values",
    [
        {"status": "active"},
        {"refusal": "Other words."},
        {"refused_at": None},
        {"status": "draft"},
    ],
)
def test_the_database_keeps_a_refusal(people, values):
    version = draft(people)
    alma = people["alma"]
    versions.refuse_draft(version_id=version.pk, by=alma, reason="Not now.")
    with pytest.raises(IntegrityError):
        PolicyVersion.objects.filter(pk=version.pk).update(**values)
