"""What `status` prints."""

from contextlib import suppress
from pathlib import Path

from e2e.cluster.api import Api
from e2e.cluster.nodes import ready_nodes
from e2e.cluster.processes import records, running
from e2e.cluster.state import State

KIB_A_MIB = 1024


def lines(state: State) -> list[str]:
    """One line for the cluster, one for each process (for a node: all that is in it, pods among them)."""
    settings = state.require()
    if settings.provider == "kind":
        return [f"kind cluster, nodes: {', '.join(settings.nodes)}; see `docker ps`"]
    ready = ready_nodes(Api(state, settings.server)) if settings.complete else set()
    alive = running(state)
    answer = [f"API server {settings.server}{'' if settings.complete else ' (did not come up)'}"]
    for name in records(state):
        if name not in alive:
            answer.append(f"{name:26} ended; see {state.logs}/{name}.log")
            continue
        rss, pss = memory_mib(alive[name])
        condition = "" if name not in settings.nodes else "Ready" if name in ready else "not Ready"
        answer.append(f"{name:26} pid {alive[name]:<8} RSS {rss:5} MiB, PSS {pss:5} MiB  {condition}".rstrip())
    stopped = [name for name in settings.nodes if name not in records(state)]
    return answer + [f"{name:26} stopped" for name in stopped]


def memory_mib(pid: int) -> tuple[int, int]:
    """Resident and proportional memory of a process and all its descendants."""
    totals = {"Rss:": 0, "Pss:": 0}
    for member in _family(pid):
        with suppress(OSError):  # ended meanwhile
            for line in Path(f"/proc/{member}/smaps_rollup").read_text().splitlines():
                field, _, rest = line.partition(" ")
                if field in totals:
                    totals[field] += int(rest.split()[0])
    return totals["Rss:"] // KIB_A_MIB, totals["Pss:"] // KIB_A_MIB


def _family(pid: int) -> list[int]:
    children: list[int] = []
    with suppress(OSError):
        for file in Path(f"/proc/{pid}/task").glob("*/children"):
            children += map(int, file.read_text().split())
    return [pid, *(member for child in children for member in _family(child))]
