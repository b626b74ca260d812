"""Access over HTTP: the key, rebound names, pages of other sites, what strangers see."""

from __future__ import annotations

import pytest
from pydantic import SecretStr
from redraft.model.errors import SettingsError
from redraft.model.records import ModelStatus
from redraft.server.app import create_app
from redraft.server.settings import Settings
from support.editors.predictor import ScriptedPredictor
from support.served import send, served


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org", "", "127.0.0.1.x"])
def test_an_address_others_can_reach_demands_a_key(host: str) -> None:
    with pytest.raises(SettingsError, match=r"REDRAFT_API_KEY|host"):
        create_app(ScriptedPredictor(), Settings().with_options(host=host))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_loopback_needs_no_key(host: str) -> None:
    create_app(ScriptedPredictor(), Settings(host=host))


@pytest.mark.parametrize(
    "authorization",
    [None, "", "Bearer", "Bearer ", "Bearer wrong", "Basic secret-key", "secret-key", "Bearer é"],
)
def test_a_wrong_key_is_refused_but_on_health(authorization: str | None) -> None:
    settings = Settings(api_key=SecretStr("secret-key"), shutdown_s=0.1)
    headers = {} if authorization is None else {"Authorization": authorization}
    for method, path in (
        ("POST", "/v1/completions"),
        ("GET", "/v1/models"),
        ("GET", "/metrics"),
        ("GET", "/redraft/v1/status"),
        ("GET", "/nowhere"),
    ):
        status, answer_headers, error = send(
            path, {} if method == "POST" else None, method, headers, settings
        )
        assert status == 401, path
        assert error["code"] == "invalid_api_key"
        assert answer_headers["WWW-Authenticate"].startswith("Bearer")


async def test_health_tells_strangers_nothing_but_the_state() -> None:
    failed = ModelStatus("failed", "fake-1m", "CPU", None, "/home/jo/models/x is damaged.", 0)
    settings = Settings(api_key=SecretStr("secret-key"), shutdown_s=0.1)
    async with served(ScriptedPredictor(statuses=[failed]), settings) as (_, client):
        stranger = await client.get("/health")
        wrong = await client.get("/health", headers={"Authorization": "Bearer wrong"})
        known = await client.get("/health", headers={"Authorization": "Bearer secret-key"})
        assert {stranger.status, wrong.status, known.status} == {503}
        assert await stranger.json() == {"status": "failed", "progress": None}
        assert await wrong.json() == {"status": "failed", "progress": None}
        assert (await known.json())["message"] == failed.message


def test_the_right_key_is_let_in() -> None:
    settings = Settings(host="0.0.0.0", api_key=SecretStr("secret-key"), shutdown_s=0.1)
    for scheme in ("Bearer", "bearer"):
        status, _, _ = send(
            "/v1/completions",
            {"prompt": "a", "suffix": "b"},
            headers={"Authorization": f"{scheme} secret-key", "Host": "gpu.example.org"},
            settings=settings,
        )
        assert status == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "[bad", "10.0.0.1"])
def test_a_rebound_name_is_refused_without_a_key(host: str) -> None:
    status, _, error = send("/v1/models", None, "GET", {"Host": host})
    assert (status, error["code"]) == (403, "forbidden")


@pytest.mark.parametrize("host", ["localhost", "localhost:7331", "[::1]:7331", "127.0.0.1"])
def test_names_of_this_machine_are_let_in(host: str) -> None:
    status, _, _ = send("/v1/models", None, "GET", {"Host": host})
    assert status == 200


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        ("https://evil.example", 403),
        ("null", 403),
        ("http://127.0.0.1.evil.example", 403),
        ("http://localhost:3000", 200),
    ],
)
def test_other_sites_pages_are_refused_without_a_key(origin: str, expected: int) -> None:
    body = {"prompt": "a", "suffix": "b"}
    status, headers, _ = send("/v1/completions", body, headers={"Origin": origin})
    assert status == expected
    assert "Access-Control-Allow-Origin" not in headers
