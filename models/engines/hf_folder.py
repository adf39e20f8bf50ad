"""A GGUF base as a Hugging Face folder, which vLLM and training read. Run by a Python that has transformers:

    python -P hf_folder.py BASE.gguf FOLDER     (-P: `gguf` is a library there, and a module of ours beside this file)

Standard library and transformers only: it runs in the environment of the server, where nothing of ours is installed.
The folder is written beside its place and put there whole.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path


def convert(gguf: Path, folder: Path) -> None:
    """Write the weights (bfloat16), configuration and tokenizer of a GGUF file as a folder."""
    import torch  # noqa: PLC0415
    from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: PLC0415

    where = {"pretrained_model_name_or_path": str(gguf.parent), "gguf_file": gguf.name}
    model = AutoModelForCausalLM.from_pretrained(**where, dtype=torch.bfloat16)
    model.hf_quantizer = None  # the weights are whole numbers no longer
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    tokenizer = AutoTokenizer.from_pretrained(**where)
    made = folder.with_name(f"{folder.name}.{os.getpid()}.part")
    shutil.rmtree(made, ignore_errors=True)
    try:
        model.save_pretrained(made)
        tokenizer.save_pretrained(made)
        shutil.rmtree(folder, ignore_errors=True)
        os.replace(made, folder)
    finally:
        shutil.rmtree(made, ignore_errors=True)


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]))
