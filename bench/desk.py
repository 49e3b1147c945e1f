"""G6 and G7: the queue and the review page among a thousand and among a million
requests that wait, in turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from unittest import mock
from urllib.parse import urlsplit

from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.template.backends.django import Template
from django.test import Client

from journal import clock
from policies.models import Person
from reviews.desk.components import badges
from reviews.desk.queue import page
from reviews.desk.queue.page import QueueFilters

from . import crowd
from .crowd import Databases
from .load import median
from .report import GoalResult, Options, format_ms, format_ratio, print_text
from .seed import Seed

COST_BAR, RENDER_BAR_S = 1.2, 0.004
REPEATS = 15  # views of a page in one round, after two to warm up
WARM_UP = 2
VIEWS = [("rita", tab) for tab in ("open", "mine", "waiting", "done")] + [
    ("sue", tab) for tab in ("open", "waiting", "done")
]
_created: list[Databases] = []


def get_databases(seed: Seed) -> Databases:
    """Both goals look at the same rows."""
    if not _created:
        _created.append(crowd.create_databases(seed))
    return _created[0]


@dataclass(slots=True)
class Comparison:
    """The same measurement among few and among many, a round each."""

    few: list[float] = field(default_factory=list)
    many: list[float] = field(default_factory=list)

    @property
    def ratios(self) -> list[float]:
        return [many / few for few, many in zip(self.few, self.many, strict=True)]

    def __str__(self) -> str:
        said = f"{format_ms(median(self.few))} -> {format_ms(median(self.many))}"
        return f"{format_ratio(self.ratios)} x ({said})"


def measure_queue_queries(seed: Seed, options: Options) -> GoalResult:
    """G6: the time that the queue view's queries take."""
    found = get_databases(seed)
    pairs = {view: Comparison() for view in VIEWS}
    for number in range(options.rounds):
        for view, pair in pairs.items():
            _measure_both(found, pair, partial(_time_queries, *view))
        said = ", ".join(f"{' '.join(v)} {p.ratios[-1]:.2f}" for v, p in pairs.items())
        print_text(f"G6 round {number + 1}: {said}")
    main = pairs["rita", "open"]
    rest = [pair for view, pair in pairs.items() if view != ("rita", "open")]
    others = max(rest, key=lambda pair: median(pair.ratios))
    return GoalResult(
        "G6 queue view among 1,000,000",
        f"{main}; the slowest other tab {others}",
        f"<= {COST_BAR} x its cost among 1,000",
        max(median(main.ratios), median(others.ratios)) <= COST_BAR,
        _describe_basis(options),
    )


def _time_queries(name: str, tab: str) -> Callable[[], float]:
    def view() -> float:
        person = Person.objects.get(username=name)
        spent = 0.0

        def timed(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
            nonlocal spent
            began = time.perf_counter()
            try:
                return execute(sql, params, many, context)
            finally:
                spent += time.perf_counter() - began

        with connection.execute_wrapper(timed):
            decidable = badges.count_badges(person).queue
            page.build_queue_page(
                person, QueueFilters(tab=tab), decidable=decidable, now=clock.now()
            )
        return spent

    return view


def measure_whole_pages(seed: Seed, options: Options) -> GoalResult:
    """G7: whole GETs through every middleware, and what the templates take of it."""
    found = get_databases(seed)
    call_command("collectstatic", interactive=False, verbosity=0)
    paths = {"queue": "/queue/", "review": f"/requests/{found.asked}/"}
    pairs = {name: Comparison() for name in paths}
    renders = {name: Comparison() for name in paths}
    for number in range(options.rounds):
        for name, path in paths.items():
            _measure_both(found, pairs[name], partial(_time_answer, path))
            _measure_both(found, renders[name], partial(_time_render, path))
        said = ", ".join(
            f"{n} {pairs[n].ratios[-1]:.2f} x, render {format_ms(renders[n].many[-1])}"
            for n in paths
        )
        print_text(f"G7 round {number + 1}: {said}")
    slowest = max(median(pair.ratios) for pair in pairs.values())
    render = max(median(pair.many) for pair in renders.values())
    shown = "; ".join(
        f"{n} {pairs[n]}, render {format_ms(median(renders[n].many))} of CPU"
        for n in paths
    )
    return GoalResult(
        "G7 whole GET among 1,000,000",
        shown,
        f"<= {COST_BAR} x their cost among 1,000; render <= {format_ms(RENDER_BAR_S)} of CPU",
        slowest <= COST_BAR and render <= RENDER_BAR_S,
        _describe_basis(options),
    )


def _measure_both(
    found: Databases, pair: Comparison, make: Callable[[], Callable[[], float]]
) -> None:
    for name, times in ((found.few, pair.few), (found.many, pair.many)):
        with found.at(name):
            view = make()
            for _ in range(WARM_UP):
                view()
            times.append(median([view() for _ in range(REPEATS)]))


def _time_answer(path: str) -> Callable[[], float]:
    client = _sign_in_client()

    def view() -> float:
        began = time.perf_counter()
        answer = client.get(path)
        took = time.perf_counter() - began
        assert answer.status_code == 200, answer.status_code
        return took

    return view


def _time_render(path: str) -> Callable[[], float]:
    client = _sign_in_client()

    def view() -> float:
        with _record_renders() as spent:
            client.get(path)
        return sum(spent)

    return view


@contextmanager
def _record_renders() -> Iterator[list[float]]:
    """The CPU time of every template that is rendered meanwhile."""
    spent: list[float] = []
    plain = Template.render

    def timed(self: Template, *args: Any, **kwargs: Any) -> Any:
        began = time.thread_time()
        try:
            return plain(self, *args, **kwargs)
        finally:
            spent.append(time.thread_time() - began)

    with mock.patch.object(Template, "render", timed):
        yield spent


def _sign_in_client() -> Client:
    client = Client(HTTP_HOST=urlsplit(settings.HOLDPOINT.base_url).netloc)
    rita = Person.objects.get(username="rita")
    client.force_login(rita, "django.contrib.auth.backends.ModelBackend")
    return client


def _describe_basis(options: Options) -> str:
    return f"n = {REPEATS} of each, {options.rounds} rounds in turn"
