"""Names that ``spec.engine.extraArgs`` refuses whatever the operator's allow list says.

The API server refuses them at apply time, so that no allow list, however generous, lets a pool run code of its
own choosing or contradict a field. Names are compared without case, dashes and underscores, and as prefixes too,
because argument parsers accept ``trust_remote_code`` and ``--trust-remote`` alike, and with ``no-`` in front, which
turns a switch round.
"""

from __future__ import annotations

RUNS_CODE = (
    "trust-remote-code",
    "hf-overrides",
    "code-revision",
    "worker-cls",
    "worker-extension-cls",
    "scheduler-cls",
    "distributed-executor-backend",
    "logits-processors",
    "logits-processor-pattern",
    "io-processor-plugin",
    "tool-parser-plugin",
    "reasoning-parser-plugin",
    "kv-transfer-config",
    "ec-transfer-config",
    "model-loader-extra-config",
    "model-class-overrides",
    "structured-outputs-config",
    "weight-transfer-config",
    "ec-manager-config",
    "profiler-config",
    "logging-config",
    "log-config-file",
    "mm-encoder-fp8-scale-path",
    "mm-encoder-fp8-scale-save-path",
    "compilation-config",
    "additional-config",
    "speculative-config",
    "middleware",
    "config",
    "config-format",
    "allowed-local-media-path",
)
"""Arguments that import modules, or read or write files, by a name that the pool gives."""

RESERVED = (
    "model",
    "model-tag",
    "model-weights",
    "served-model-name",
    "tokenizer",
    "revision",
    "tokenizer-revision",
    "hf-token",
    "hf-config-path",
    "download-dir",
    "tensor-parallel-size",
    "pipeline-parallel-size",
    "prefill-context-parallel-size",
    "decode-context-parallel-size",
    "data-parallel-size",
    "data-parallel-address",
    "max-model-len",
    "block-size",
    "max-num-batched-tokens",
    "enable-chunked-prefill",
    "enable-prefix-caching",
    "host",
    "port",
    "uds",
    "api-key",
    "root-path",
    "ssl-keyfile",
    "ssl-certfile",
    "master-addr",
    "master-port",
    "nnodes",
    "node-rank",
)
"""Arguments that have a field of their own, or that the operator sets."""


def folded(name: str) -> str:
    """``name`` without case, dashes and underscores."""
    return name.lower().replace("-", "").replace("_", "")


def cel_no_prefix_of(names: tuple[str, ...]) -> str:
    """CEL over the map: no key is one of ``names``, or an abbreviation of one, in any spelling."""
    listed = ", ".join(f"'{folded(name)}'" for name in names)
    key = "k.lowerAscii().replace('-', '').replace('_', '')"
    return f"self.all(k, ![{listed}].exists(name, name.startsWith({key}) || ('no' + name).startsWith({key})))"
