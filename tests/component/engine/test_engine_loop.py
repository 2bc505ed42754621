"""The whole engine in one loop, with every blocking call made an error."""

from __future__ import annotations

import asyncio
import os
import signal
import socket

import httpx
import pytest
from blockbuster import blockbuster_ctx

from headwater_engine.app import serve
from headwater_engine.backends.factory import create_backend
from headwater_engine.settings import EngineSettings
from support.engine_process import PATIENCE_SECONDS, chat, finish_reasons, frames_of


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


async def test_no_call_blocks_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_BACKEND", "sim")
    settings = EngineSettings(
        sim_profile="test-fast", http_port=free_port(), admin_port=free_port(), endpoint_settle_seconds=0
    )
    url = f"http://127.0.0.1:{settings.http_port}"
    backend = create_backend(settings)
    with blockbuster_ctx("headwater_engine"):
        running = asyncio.create_task(serve(settings, backend, None))
        async with httpx.AsyncClient(timeout=PATIENCE_SECONDS, trust_env=False) as client:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not await _ready(client, url):  # noqa: ASYNC110 - readiness is polled, as the kubelet does
                    await asyncio.sleep(0.02)
            answer = await client.post(f"{url}/v1/chat/completions", json=chat(max_tokens=5, ignore_eos=True))
            bad = await client.post(f"{url}/v1/chat/completions", json=chat(top_p=2))
            admin = f"http://127.0.0.1:{settings.admin_port}"
            state, metrics = await client.get(f"{admin}/admin/state"), await client.get(f"{admin}/metrics")
        os.kill(os.getpid(), signal.SIGTERM)
        code = await running

    assert finish_reasons(frames_of(answer.content)) == ["length"]
    assert [each.status_code for each in (bad, state, metrics)] == [400, 200, 200]
    assert code == 0


async def _ready(client: httpx.AsyncClient, url: str) -> bool:
    try:
        return (await client.get(f"{url}/readyz")).status_code == 200
    except httpx.ConnectError:
        return False
