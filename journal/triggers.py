"""Database triggers that enforce the rules on writers that bypass this code.

Migrations of a release use these functions: for the arguments that those migrations
give, their SQL does not change any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from django.db.migrations import RunSQL

SHORTEST_REMOVAL_DAYS = 97  # a request waits at most 90


def immutable(
    table: str, *, but_for: Sequence[str] = (), once: Sequence[str] = ()
) -> RunSQL:
    """A migration that makes rows of `table` immutable: a trigger refuses DELETE,
    TRUNCATE, and UPDATE of any column not named here.

    Columns in `but_for` may change at any time; those in `once` only from null to a
    value.
    """
    name = f"{table}_immutable"
    columns = "'{" + ",".join([*but_for, *once]) + "}'::text[]"
    same = [
        f"to_jsonb(NEW) - {columns} = to_jsonb(OLD) - {columns}",
        *(f"(OLD.{c} IS NULL OR NEW.{c} IS NOT DISTINCT FROM OLD.{c})" for c in once),
    ]
    # Nested, because under TRUNCATE there is no NEW or OLD to compare.
    allowed = f"""
            IF TG_OP = 'UPDATE' THEN
                IF {" AND ".join(same)} THEN RETURN NEW; END IF;
            END IF;"""
    return RunSQL(
        f"""
        CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            {allowed if but_for or once else ""}
            RAISE EXCEPTION '{table} rows never change' USING ERRCODE = '23001';
        END $$;
        CREATE TRIGGER {name} BEFORE UPDATE OR DELETE ON {table}
            FOR EACH ROW EXECUTE FUNCTION {name}();
        CREATE TRIGGER {table}_kept BEFORE TRUNCATE ON {table}
            FOR EACH STATEMENT EXECUTE FUNCTION {name}();
        """,
        f"DROP TRIGGER {table}_kept ON {table}; DROP TRIGGER {name} ON {table};"
        f"DROP FUNCTION {name}();",
    )


def legal_steps(table: str, steps: Iterable[tuple[str, str]]) -> RunSQL:
    """A migration whose trigger refuses every change of status in `table` that is not
    among `steps`, pairs of (source, target), on INSERT (with "" as the source) and on
    UPDATE (docs/invariants.md I3). An UPDATE may leave the status unchanged."""
    name = f"{table}_legal"
    listed = ", ".join(f"('{a}','{b}')" for a, b in sorted(set(steps)))
    return RunSQL(
        f"""
        CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$
        DECLARE
            was text := CASE WHEN TG_OP = 'INSERT' THEN '' ELSE OLD.status END;
        BEGIN
            IF TG_OP = 'UPDATE' AND was = NEW.status THEN RETURN NEW; END IF;
            IF (was, NEW.status::text) IN ({listed}) THEN RETURN NEW; END IF;
            RAISE EXCEPTION '{table}: no step from % to %', was, NEW.status
                USING ERRCODE = '23514';
        END $$;
        CREATE TRIGGER {name} BEFORE INSERT OR UPDATE OF status ON {table}
            FOR EACH ROW EXECUTE FUNCTION {name}();
        """,
        f"DROP TRIGGER {name} ON {table}; DROP FUNCTION {name}();",
    )


def kept(table: str, *, but_for: str = "") -> RunSQL:
    """A migration whose triggers refuse DELETE and TRUNCATE of `table`. `but_for` is an
    SQL condition about OLD: such rows may be deleted, because nothing depends on them
    any more."""
    if but_for:
        deletion = f"BEFORE DELETE ON {table} FOR EACH ROW WHEN (NOT ({but_for}))"
    else:
        deletion = f"BEFORE DELETE ON {table} FOR EACH STATEMENT"
    refuse = "EXECUTE FUNCTION journal_refuse_loss()"
    return RunSQL(
        f"""
        CREATE TRIGGER {table}_kept {deletion} {refuse};
        CREATE TRIGGER {table}_whole BEFORE TRUNCATE ON {table}
            FOR EACH STATEMENT {refuse};
        """,
        f"DROP TRIGGER {table}_whole ON {table}; DROP TRIGGER {table}_kept ON {table};",
    )


def fixed(
    table: str,
    columns: Sequence[str] = (),
    *,
    rules: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> RunSQL:
    """A migration whose trigger refuses every change of `columns`. `rules` has
    conditions about OLD and NEW, each with the columns that it names: they refuse some
    changes of these. An UPDATE of other columns does not call the trigger."""
    named = dict.fromkeys([*columns, *(name for of in rules.values() for name in of)])
    refused = [f"OLD.{name} IS DISTINCT FROM NEW.{name}" for name in columns]
    refused += [f"({rule})" for rule in rules]
    return RunSQL(
        f"""
        CREATE TRIGGER {table}_fixed BEFORE UPDATE OF {", ".join(named)} ON {table}
            FOR EACH ROW WHEN ({" OR ".join(refused)})
            EXECUTE FUNCTION journal_refuse_rewrite();
        """,
        f"DROP TRIGGER {table}_fixed ON {table};",
    )


def once(mark: str, *columns: str) -> dict[str, Sequence[str]]:
    """A rule of `fixed`: `mark` and `columns` no longer change once `mark` is set."""
    every = [mark, *columns]
    differ = " OR ".join(f"OLD.{name} IS DISTINCT FROM NEW.{name}" for name in every)
    return {f"OLD.{mark} IS NOT NULL AND ({differ})": every}


def growing(*columns: str) -> dict[str, Sequence[str]]:
    """Rules of `fixed`: these numbers never fall."""
    return {f"NEW.{name} < OLD.{name}": [name] for name in columns}


def shortening(*columns: str) -> dict[str, Sequence[str]]:
    """Rules of `fixed`: these times never become later, and are never removed. Who
    makes one earlier only takes authority away."""
    return {
        f"NEW.{name} > OLD.{name} OR NEW.{name} IS NULL AND OLD.{name} IS NOT NULL": [
            name
        ]
        for name in columns
    }


def widening(*columns: str) -> dict[str, Sequence[str]]:
    """Rules of `fixed`: these arrays lose no member."""
    return {f"NOT NEW.{name} @> OLD.{name}": [name] for name in columns}


def removable(table: str, columns: Mapping[str, str], *, condition: str) -> RunSQL:
    """A migration that lets an UPDATE of a table of `immutable` remove what an old row
    says, if a condition about OLD and NEW holds. `columns` has what each column then
    is, "" for one that the condition is about."""
    name = f"{table}_immutable"
    names = "'{" + ",".join(columns) + "}'::text[]"
    rules = [
        f"to_jsonb(NEW) - {names} = to_jsonb(OLD) - {names}",
        *(f"NEW.{column} = {value}" for column, value in columns.items() if value),
        condition,
    ]
    refusal = f"RAISE EXCEPTION '{table} rows never change' USING ERRCODE = '23001';"
    function = f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql"
    return RunSQL(
        f"""
        {function} AS $$
        BEGIN
            IF TG_OP = 'UPDATE' THEN
                IF {" AND ".join(rules)} THEN RETURN NEW; END IF;
            END IF;
            {refusal}
        END $$;
        """,
        f"{function} AS $$ BEGIN {refusal} END $$;",
    )


def removed_once(since: str) -> str:
    """A condition of `removable`: it happens once, `removed_after` so many days since
    this time of OLD."""
    return f"""OLD.removed_after IS NULL
        AND NEW.removed_after >= {SHORTEST_REMOVAL_DAYS}
        AND {since} < clock_timestamp() - make_interval(days => NEW.removed_after)"""
