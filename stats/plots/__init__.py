"""The plots. Each module of this folder defines one as `PLOT`, with its measures; a new
module is found by itself, on the page, in the rollups and in the tests."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from ..charts import Group, Plot
from ..measures import Measure


@cache
def list_plots() -> tuple[Plot, ...]:
    """Every plot, in the order of the pages."""
    modules = [
        importlib.import_module(f"{__name__}.{found.name}")
        for found in pkgutil.iter_modules(__path__)
    ]
    order = list(Group)
    plots: list[Plot] = [module.PLOT for module in modules]
    return tuple(sorted(plots, key=lambda one: (order.index(one.group), one.place)))


@cache
def list_measures() -> tuple[Measure, ...]:
    found = {m.name: m for plot in list_plots() for m in plot.measures}
    return tuple(found.values())


def find_plot(slug: str) -> Plot | None:
    return next((one for one in list_plots() if one.slug == slug), None)
