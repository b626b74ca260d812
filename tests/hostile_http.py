"""Whatever JSON there is, sent to a live server. Apart from the fakes: processes import those."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from fakes_http import ScriptedPredictor, served
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st


def never_a_500(
    routes: Sequence[str], bodies: st.SearchStrategy[bytes], predictor: ScriptedPredictor
) -> None:
    """Sends whatever ``bodies`` draws to any of ``routes`` of one server: no fault of ours comes of
    it."""
    loop = asyncio.new_event_loop()
    context = served(predictor)
    _, client = loop.run_until_complete(context.__aenter__())

    async def send(path: str, body: bytes) -> int:
        async with client.post(path, data=body) as answer:
            await answer.read()
            return answer.status

    @hypothesis_settings(
        max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    @given(path=st.sampled_from(routes), body=bodies)
    def check(path: str, body: bytes) -> None:
        assert loop.run_until_complete(send(path, body)) < 500

    try:
        check()
    finally:
        loop.run_until_complete(context.__aexit__(None, None, None))
        loop.close()
