"""The plots. Each module of this folder lists its own as `PLOTS`, with their measures;
a new one is found by itself, on the page, in the rollups and in the tests."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from ..charts import Group, Plot
from ..measures import Measure


@cache
def list_plots() -> tuple[Plot, ...]:
    """Every plot, in the order of the pages."""
    plots: list[Plot] = []
    for module in pkgutil.iter_modules(__path__):
        plots += importlib.import_module(f"{__name__}.{module.name}").PLOTS
    order = list(Group)
    return tuple(sorted(plots, key=lambda plot: (order.index(plot.group), plot.place)))


@cache
def list_measures() -> tuple[Measure, ...]:
    measures = {m.name: m for plot in list_plots() for m in plot.measures}
    return tuple(measures.values())


def find_plot(slug: str) -> Plot | None:
    return next((plot for plot in list_plots() if plot.slug == slug), None)
