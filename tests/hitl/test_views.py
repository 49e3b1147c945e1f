from __future__ import annotations

import pytest
from django.test import Client


def test_livez_answers_without_a_database(client: Client) -> None:
    response = client.get("/livez", secure=False)
    assert response.status_code == 200
    assert response.json() == {"status": "ok"}


@pytest.mark.django_db
def test_readyz_names_database_and_broker(client: Client) -> None:
    response = client.get("/readyz")
    assert response.json() == {"status": "ok", "database": "ok", "broker": "ok"}


@pytest.mark.django_db(transaction=True)
def test_two() -> None:
    pass
