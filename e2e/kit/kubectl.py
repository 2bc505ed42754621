"""kubectl against one kubeconfig, with JSON where objects come back."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Object = dict[str, Any]


class KubectlError(RuntimeError):
    """kubectl ended with an error; ``stderr`` is what it said."""

    def __init__(self, argv: list[str], stderr: str) -> None:
        super().__init__(f"{' '.join(argv)}: {stderr.strip()}")
        self.stderr = stderr


@dataclass(frozen=True)
class Kubectl:
    """Runs kubectl. ``namespace`` is the default for every call."""

    kubeconfig: Path
    binary: str = "kubectl"
    namespace: str | None = None

    def in_namespace(self, namespace: str) -> Kubectl:
        """The same cluster with another default namespace."""
        return Kubectl(self.kubeconfig, self.binary, namespace)

    def run(self, *args: str, stdin: str | None = None, timeout: float = 120) -> str:
        """Standard output of ``kubectl ARGS``; raises KubectlError on a non-zero exit."""
        done = self.attempt(*args, stdin=stdin, timeout=timeout)
        if done.returncode != 0:
            raise KubectlError(["kubectl", *args], done.stderr)
        return done.stdout

    def attempt(self, *args: str, stdin: str | None = None, timeout: float = 120) -> subprocess.CompletedProcess[str]:
        """The finished process, whatever its exit code."""
        argv = self.argv(*args)
        return subprocess.run(argv, input=stdin, capture_output=True, text=True, timeout=timeout, check=False)

    def argv(self, *args: str) -> list[str]:
        """The whole command line of ``kubectl ARGS``."""
        scope = ["--namespace", self.namespace] if self.namespace else []
        return [self.binary, "--kubeconfig", str(self.kubeconfig), *scope, *args]

    def apply(self, *objects: Object) -> str:
        """``kubectl apply`` of whole objects."""
        return self.run("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))

    def get(self, kind: str, name: str) -> Object | None:
        """One object, or None if there is none of that name."""
        done = self.attempt("get", kind, name, "-o", "json")
        if done.returncode == 0:
            found: Object = json.loads(done.stdout)
            return found
        if "NotFound" in done.stderr or "not found" in done.stderr:
            return None
        raise KubectlError(["kubectl", "get", kind, name], done.stderr)

    def list(self, kind: str, *args: str) -> list[Object]:
        """Objects of a kind; ``args`` may hold a selector or ``-A``."""
        items: list[Object] = json.loads(self.run("get", kind, *args, "-o", "json"))["items"]
        return items


def condition(obj: Object | None, type_: str) -> Object | None:
    """The condition of a type in an object's status, or None."""
    conditions = ((obj or {}).get("status") or {}).get("conditions") or []
    return next((c for c in conditions if c["type"] == type_), None)


def is_true(obj: Object | None, type_: str) -> bool:
    """Whether that condition is there, True, and of the object's present generation."""
    found = condition(obj, type_)
    generation = (obj or {}).get("metadata", {}).get("generation")
    return bool(found and found["status"] == "True" and found.get("observedGeneration", generation) == generation)
