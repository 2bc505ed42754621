"""Command line of the local cluster."""

import argparse
import sys
import time
from pathlib import Path

from e2e.cluster import build, provider, status
from e2e.cluster.errors import ClusterError
from e2e.cluster.state import DEFAULT_STATE, State


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the exit code is 0 unless it failed."""
    args = _parser().parse_args(arguments)
    try:
        return int(args.run(State(args.state), args) or 0)
    except ClusterError as error:
        print(f"cluster: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("cluster: interrupted", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python3 -m e2e.cluster", description="A real local Kubernetes cluster.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--state", type=Path, default=DEFAULT_STATE, metavar="DIR", help="which cluster it is")

    def command(name: str, run: object, explanation: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=explanation, description=explanation, parents=[shared])
        sub.set_defaults(run=run)
        return sub

    command("build", _build, "build the cluster's programs into the cache")
    up = command("up", _up, "start the cluster; nothing to do where it runs already")
    up.add_argument("--nodes", type=int, metavar="N", help="0: the control plane alone, without root (default 1)")
    up.add_argument("--gpus-per-node", type=int, metavar="K", help="pretended nvidia.com/gpu of a node (default 24)")
    command("down", _down, "stop the cluster and remove all that it made")
    command("status", _status, "list the cluster's processes; exit code 1 if there is none")
    load = command("load", _load, "bring image archives into every node")
    load.add_argument("archives", nargs="+", type=Path, metavar="IMAGE.tar")
    for name, run, text in (
        ("stop-node", _stop_nodes, "cut a node's power: ends every process in it at once"),
        ("start-node", _start_nodes, "switch a node on again and wait until it is Ready"),
    ):
        command(name, run, text).add_argument("nodes", nargs="+", metavar="NODE")
    command("kubeconfig", _kubeconfig, "print the kubeconfig's path")
    command("env", _env, "print shell exports for KUBECONFIG and PATH (kubectl, helm)")
    return parser


def _build(_: State, __: argparse.Namespace) -> None:
    build.build()
    print(f"programs are in {build.bin_dir()}")


def _up(state: State, args: argparse.Namespace) -> None:
    begin = time.monotonic()
    changed = provider.up(state, provider.Wish(args.nodes, args.gpus_per_node))
    if changed:
        print(f"cluster is up after {time.monotonic() - begin:.1f} s; KUBECONFIG={state.kubeconfig}")
    else:
        print(f"cluster is up already, nothing to do; KUBECONFIG={state.kubeconfig}")


def _down(state: State, _: argparse.Namespace) -> None:
    print("cluster is down" if provider.down(state) else f"no cluster in {state.dir}, nothing to do")


def _status(state: State, _: argparse.Namespace) -> None:
    print("\n".join(status.lines(state)))


def _load(state: State, args: argparse.Namespace) -> None:
    provider.load(state, args.archives)


def _stop_nodes(state: State, args: argparse.Namespace) -> None:
    provider.stop_nodes(state, args.nodes)


def _start_nodes(state: State, args: argparse.Namespace) -> None:
    provider.start_nodes(state, args.nodes)


def _kubeconfig(state: State, _: argparse.Namespace) -> None:
    state.require()
    print(state.kubeconfig)


def _env(state: State, _: argparse.Namespace) -> None:
    state.require()
    print(f'export KUBECONFIG="{state.kubeconfig}" PATH="{build.bin_dir()}:$PATH"')
