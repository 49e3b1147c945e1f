"""SQL that backs the rules in the database itself, for writers that skip our code.
Migrations use it; what it says is frozen with them by the tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.db.migrations import RunSQL


def immutable(
    table: str, *, but_for: Sequence[str] = (), once: Sequence[str] = ()
) -> RunSQL:
    """Refuse DELETE, TRUNCATE, and UPDATE of anything but the columns named.

    Those named in `once` change a single time, from null.
    """
    name = f"{table}_immutable"
    columns = "'{" + ",".join([*but_for, *once]) + "}'::text[]"
    same = [
        f"to_jsonb(NEW) - {columns} = to_jsonb(OLD) - {columns}",
        *(f"(OLD.{c} IS NULL OR NEW.{c} IS NOT DISTINCT FROM OLD.{c})" for c in once),
    ]
    # One in the other: without a row, under TRUNCATE, there is nothing to compare.
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
    """Refuse a status that the machine has no edge to, at INSERT ("" as the source)
    and at UPDATE [I3]. A row's status may stay as it is."""
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
