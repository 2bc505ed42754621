"""The steps of the demo, in order."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any

import yaml

from e2e.demo import view
from e2e.demo.display import Display
from e2e.demo.failure import DemoError, operator_details, pool_details
from e2e.demo.settings import Settings
from e2e.kit import install
from e2e.kit.kubectl import Kubectl, KubectlError, Object, condition, is_true
from e2e.kit.pools import SYSTEM_NAMESPACE
from e2e.kit.reach import reach_service
from e2e.kit.wait import WaitTimeoutError, wait_until
from headwater_client.chat import ChatOptions, answer, stats_line, user
from headwater_client.core.failures import RequestError, describe

POLL_SECONDS = 0.5
OPERATOR_SECONDS = 180.0
NAMESPACE = "default"


@dataclass(frozen=True)
class Outcome:
    """A finished demo: the pool that answered and where."""

    kubectl: Kubectl
    pool: str
    model: str
    url: str


def run(settings: Settings, display: Display) -> Outcome:
    """Runs all steps."""
    pool: Object = yaml.safe_load(settings.backend.example.read_text())
    if settings.kubeconfig is None:
        kubectl = _local_cluster(settings, display)
        revision = _images(settings, display)
    else:
        kubectl = Kubectl(settings.kubeconfig, install.kubectl_binary())
        revision = ""
    _operator(display, kubectl, revision)
    kubectl = kubectl.in_namespace(NAMESPACE)
    _pool(settings, display, kubectl, pool)
    return _ask(settings, display, kubectl, pool)


def _local_cluster(settings: Settings, display: Display) -> Kubectl:
    with display.step("Local Kubernetes cluster"):
        return install.ensure_cluster(settings.state, settings.nodes, settings.gpus_per_node, display.log)


def _images(settings: Settings, display: Display) -> str:
    """Builds and loads the images; what identifies this build of the operator's."""
    names = settings.backend.images
    with display.step(f"Images: {', '.join(names)}"):
        archives = install.build_images(names, display.log)
    with display.step("Images into the nodes"):
        install.load_images(settings.state, archives, display.log)
        return archives[names.index("operator")].stem  # ends in a hash of all that the image is made from


def _operator(display: Display, kubectl: Kubectl, revision: str) -> None:
    with display.step("Chart: CRDs and operator"):
        # The tag stays the same from build to build; the annotation makes a new build roll out.
        annotation = f"operator.podAnnotations.headwater\\.dev/image={revision}"
        install.install_chart(kubectl.kubeconfig, settings=[annotation], progress=display.log)
        system = kubectl.in_namespace(SYSTEM_NAMESPACE)

        def available() -> bool:
            display.show(*(view.pod_line(pod) for pod in system.list("pods")))
            return all(map(_rolled_out, system.list("deployments")))

        try:
            wait_until(available, timeout=OPERATOR_SECONDS, what="running operator", interval=POLL_SECONDS)
        except WaitTimeoutError as error:
            remedy = "Its pod's state and log are above."
            raise DemoError(str(error), remedy, operator_details(kubectl)) from error


def _rolled_out(deployment: Object) -> bool:
    status, wanted = deployment.get("status", {}), deployment["spec"]["replicas"]
    return bool(
        status.get("observedGeneration") == deployment["metadata"]["generation"]
        and status.get("updatedReplicas") == status.get("replicas") == status.get("availableReplicas") == wanted
    )


def _pool(settings: Settings, display: Display, kubectl: Kubectl, pool: Object) -> None:
    name = pool["metadata"]["name"]
    with display.step(f"Pool {name}: {settings.backend.example.relative_to(install.ROOT)}"):
        kubectl.run("apply", "-f", str(settings.backend.example))

        def ready() -> bool:
            found = _observe(kubectl, name, display)
            if why := view.stalled(found):
                raise DemoError(f"the pool needs a person: {why}", "Do what the message says and run the demo again.")
            return is_true(found, "Ready") and is_true(found, "WarmPoolReady")

        try:
            wait_until(ready, timeout=settings.backend.ready_seconds, what="Ready pool", interval=POLL_SECONDS)
        except WaitTimeoutError as error:
            why = (condition(kubectl.get("ipool", name), "Ready") or {}).get("message", "the operator is silent")
            remedy = "The pool's conditions, its pods' logs and the operator's are above."
            raise DemoError(f"{error}: {why}", remedy, pool_details(kubectl, name)) from error


def _observe(kubectl: Kubectl, name: str, display: Display) -> Object | None:
    """Shows the pool, its pods and the newest events; the pool, or None while it cannot be read."""
    seen: dict[str, list[Any]] = {"InferencePool": [], "Pod": [], "Event": []}
    try:
        for item in kubectl.list("ipool,pods,events"):
            seen[item["kind"]].append(item)
    except (KubectlError, subprocess.TimeoutExpired) as error:  # a busy machine: the next look may succeed
        display.show(str(error))
        return None
    found = next((pool for pool in seen["InferencePool"] if pool["metadata"]["name"] == name), None)
    if found is not None:
        pods = [p for p in seen["Pod"] if p["metadata"].get("labels", {}).get("headwater.dev/pool") == name]
        events = [event for event in seen["Event"] if _is_about(event, name)]
        display.show(*view.pool_lines(found), *map(view.pod_line, pods), *view.event_lines(events))
    return found


def _is_about(event: Object, pool: str) -> bool:
    name = event["involvedObject"].get("name", "")
    return bool(name == pool or name.startswith(f"{pool}-"))  # groups and pods are named after their pool


def _ask(settings: Settings, display: Display, kubectl: Kubectl, pool: Object) -> Outcome:
    name, model, console = pool["metadata"]["name"], pool["spec"]["model"]["name"], display.console
    console.print(f"\n[bold]> {settings.question}[/]", highlight=False)
    with display.timed("Question"), reach_service(kubectl, name) as url:
        options = ChatOptions(url, model, max_tokens=64, temperature=0.0, use_proxy=False)
        try:
            got = asyncio.run(answer(options, (user(settings.question),), sys.stdout, time.monotonic))
        except RequestError as error:
            what = describe(error.failure, url)
            raise DemoError(what, "The engine's log is above.", pool_details(kubectl, name)) from error
    facts = (f"streamed through the Service {name} ({url})", stats_line(got.record), settings.backend.warning)
    console.print("\n" + "\n".join(f"  {fact}" for fact in facts if fact), highlight=False, soft_wrap=True)
    return Outcome(kubectl, name, model, url)
