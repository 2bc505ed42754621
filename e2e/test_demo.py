"""The demo ends with an answer that streamed through the Service, and admins see their pool."""

from __future__ import annotations

import re

from e2e.conftest import Demo, run_demo
from e2e.kit.pools import Site, names

LATER_RUN_SECONDS = 120


def test_sim_demo_streams_an_answer_through_the_service_and_prints_its_timing(sim_demo: Demo) -> None:
    assert re.search(r"TTFT\s+[\d.]+ ?m?s", sim_demo.output)
    assert re.search(r"ITL", sim_demo.output)
    assert "kubectl" in sim_demo.output, "it says what to try next"


def test_a_later_sim_demo_finds_all_in_place_and_takes_under_two_minutes(site: Site) -> None:
    before = names(site.kubectl.list("pods", "-A"))
    again = run_demo("sim", site.state, nodes=3)
    assert re.search(r"TTFT\s+[\d.]+ ?m?s", again.output)
    assert names(site.kubectl.list("pods", "-A")) == before, "nothing was made anew"
    assert again.seconds < LATER_RUN_SECONDS


def test_get_ipool_shows_counts_kv_ttft_and_readiness(site: Site) -> None:
    header, row = site.kubectl.run("get", "ipool", "-A").splitlines()
    assert header.split() == ["NAMESPACE", "NAME", "ACTIVE", "WARM", "KV", "TTFT-P90", "READY", "AGE"]
    _, _, active, warm, kv, ttft, ready, age = row.split()
    assert (active, warm, ready) == ("2/2", "1/1", "True")
    assert re.fullmatch(r"\d+%", kv)
    assert re.fullmatch(r"(\d+m?s|[\d.]+s|-)", ttft)
    assert re.fullmatch(r"[\dhms]+", age)


def test_get_rgroup_shows_pool_role_phase_and_node_of_each_group(site: Site) -> None:
    header, *rows = site.kubectl.run("get", "rgroup", "-A").splitlines()
    assert header.split() == ["NAMESPACE", "NAME", "POOL", "ROLE", "PHASE", "NODE", "RUNNING", "KV", "AGE"]
    seen = [row.split()[2:6] for row in rows]
    pool = site.kubectl.list("ipool", "-A")[0]["metadata"]["name"]
    assert sorted((role, phase) for _, role, phase, _ in seen) == [
        ("active", "Serving"),
        ("active", "Serving"),
        ("standby", "Warm"),
    ]
    assert {name for name, _, _, _ in seen} == {pool}
    assert all(node.startswith("node") for _, _, _, node in seen)


def test_explain_describes_the_slo(site: Site) -> None:
    text = site.kubectl.run("explain", "ipool.spec.slo")
    assert "ttftP90" in text
    assert "<no description>" not in text.lower()
    assert "90" in text
    assert "first token" in text.lower()
