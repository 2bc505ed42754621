"""What the demo prints at its end."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from e2e.cluster.state import DEFAULT_STATE
from e2e.demo.display import Display
from e2e.demo.failure import DemoError
from e2e.demo.run import Outcome
from e2e.demo.settings import Settings


def say_why(failure: DemoError, console: Console) -> None:
    """The output that shows a failure, then what went wrong and what to do."""
    if failure.details:
        console.print(f"\n{failure.details}", markup=False, highlight=False, soft_wrap=True)
    console.print(f"\nThe demo failed: {failure.what}", style="bold red", markup=False, highlight=False, soft_wrap=True)
    console.print(failure.remedy, markup=False, highlight=False, soft_wrap=True)


def say_times(display: Display) -> None:
    """How long each step took."""
    display.console.print("\nTime of each step", style="bold")
    for step in display.steps:
        display.console.print(f"  {step.seconds or 0:7.1f} s  {step.title}", highlight=False, soft_wrap=True)
    total = sum(step.seconds or 0 for step in display.steps)
    display.console.print(f"  {total:7.1f} s  in all", highlight=False)


def say_next(settings: Settings, outcome: Outcome, console: Console) -> None:
    """Commands worth trying in the cluster that the demo leaves up."""
    console.print("\nThe cluster stays up. Try next:", style="bold")
    for line in next_commands(settings, outcome):
        console.print(f"  {line}", markup=False, highlight=False, soft_wrap=True)


def next_commands(settings: Settings, outcome: Outcome) -> list[str]:
    """Those commands, fit to be pasted one after the other."""
    pool, kubectl = outcome.pool, Path(outcome.kubectl.binary)
    of_pool = f"-l headwater.dev/pool={pool},headwater.dev/role=active"
    lines = [f"export KUBECONFIG={outcome.kubectl.kubeconfig}"]
    if kubectl.is_absolute():
        lines.append(f'export PATH="{kubectl.parent}:$PATH"')
    lines += ["kubectl get ipool,rgroup,pods", f"kubectl describe ipool {pool}"]
    url = outcome.url
    if url.startswith("http://127.0.0.1"):  # the port-forward of the demo itself has ended
        lines.append(f"kubectl port-forward service/{pool} 8000:80 &")
        url = "http://127.0.0.1:8000"
    lines += [
        f'.venv/bin/headwater chat --url {url} --temperature 0 "Why is the sky blue?"',
        f".venv/bin/headwater bench --url {url} --concurrency 4 --requests 16 --max-tokens 64",
        f"kubectl delete pod {of_pool} --wait=false; kubectl get rgroup --watch",
    ]
    if settings.backend.name == "sim":  # its groups are small; a second vLLM group may not fit
        lines.append(f"kubectl scale ipool/{pool} --replicas=1; kubectl get rgroup --watch")
    state = "" if settings.state == DEFAULT_STATE else f" STATE={settings.state}"
    lines.append(f"make cluster-down{state}" if settings.kubeconfig is None else f"kubectl delete ipool {pool}")
    return lines
