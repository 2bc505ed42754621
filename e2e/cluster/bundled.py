"""The cluster made of plain processes: up, down, and what lies between."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from e2e.cluster import build, cgroups, control_plane, dns, images, network, nodes, processes
from e2e.cluster.api import Api
from e2e.cluster.requirements import check
from e2e.cluster.state import Settings, State

Progress = Callable[[str], None]


def up(state: State, settings: Settings, progress: Progress = print, tied_to_caller: bool = False) -> Settings:
    """Start all that does not run. Nothing but logs is left of an attempt that fails."""
    check(state, len(settings.nodes))
    build.build(build.ALL if settings.nodes else build.LONE, progress)
    state.save(settings)
    try:
        settings = _choose_addresses(state, settings)
        control_plane.make_credentials(state, settings)
        _start_missing(state, settings, tied_to_caller)
    except BaseException:
        _halt(state)
        raise
    return state.mark_complete(settings)


def mend(state: State, settings: Settings, progress: Progress = print) -> list[str]:
    """Start again what ended since `up`, nodes that were stopped among it; returns their names."""
    expected = {*control_plane.PROCESSES, *settings.nodes, *([dns.NAME] if settings.nodes else [])}
    dead = sorted(expected - processes.running(state).keys())
    if dead:
        progress(f"starting again: {', '.join(dead)}")
        check(state, len(settings.nodes))
        _start_missing(state, settings)
    return dead


def survives(state: State, settings: Settings) -> bool:
    """Whether what is left can be mended: after the machine was restarted its network is gone."""
    return settings.complete and (not settings.nodes or network.bridge_exists(state))


def down(state: State) -> None:
    """Remove every process, link, cgroup and file, however far `up` came."""
    _halt(state)
    state.remove_files()


def start_nodes(state: State, settings: Settings, names: list[str]) -> None:
    """Switch on those of `names` that are off, and wait until they are Ready."""
    nodes.require_nodes(settings, names)
    _switch_on(state, settings, names)


def stop_nodes(state: State, settings: Settings, names: list[str]) -> None:
    """Cut the power of `names`."""
    nodes.require_nodes(settings, names)
    for name in names:
        nodes.stop_node(state, name)


def _choose_addresses(state: State, settings: Settings) -> Settings:
    net = network.create_bridge(state) if settings.nodes else control_plane.LONE_NET
    settings = replace(settings, net=net, ports=control_plane.choose_ports())
    server = f"https://{control_plane.address(settings)}:{settings.ports['api']}"
    return state.save(replace(settings, server=server))


def _start_missing(state: State, settings: Settings, tied_to_caller: bool = False) -> None:
    control_plane.start(state, settings, build.KUBELITE.path, tied_to_caller)
    if not settings.nodes:
        return
    if dns.NAME not in processes.running(state):
        dns.start(state, settings)
    _switch_on(state, settings, settings.nodes)


def _switch_on(state: State, settings: Settings, names: Sequence[str]) -> None:
    alive = processes.running(state)
    dead = [name for name in names if name not in alive]
    stale = {n: time for n, time in nodes.ready_nodes(Api(state, settings.server)).items() if n in dead}
    for name in dead:
        nodes.start_node(state, settings, name)
    network.route_services(state, settings.net, settings.nodes[0])
    images.load(state, settings, [build.pause_archive()], progress=lambda _: None)
    nodes.wait_ready(state, settings, names, stale)


def _halt(state: State) -> None:
    processes.stop(state, processes.records(state))
    processes.sweep(state)
    network.remove_links(state)
    cgroups.remove(cgroups.root(state))
