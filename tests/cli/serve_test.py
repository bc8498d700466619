"""The life of a server process: start, log, signals, end."""
import json
import os
import signal
import subprocess
import tempfile
import time
import unittest
import urllib.request

from fulgur_process import DUMMY, FULGUR, TINY_MODEL, scripted, serving, wait_until

CHAT = {"messages": [{"role": "user", "content": "go"}], "stream": True}


def slow_answer(tokens, delay_ms):
    return {"text": "</think>" + "a " * tokens, "delay_ms": delay_ms}


class ServeTest(unittest.TestCase):
    def test_serves_random_weights(self):
        with serving(*DUMMY, "--quantization", "ascend", "--port", "1", "--port", "2") as server:
            with urllib.request.urlopen(server.address + "/health") as answer:
                self.assertEqual(answer.status, 200)
            with server.post("/v1/completions", {"prompt": "hello", "max_tokens": 3, "ignore_eos": True}) as answer:
                self.assertEqual(json.load(answer)["usage"]["completion_tokens"], 3)
            self.assertEqual(server.stop(), 0)
            log = "".join(server.log)
            self.assertEqual(log.count("--quantization has no effect: every tensor's format"), 1)
            self.assertIn("--port is given more than once", log)
            self.assertIn("weights are random", log)

    def test_same_seed_same_dummy(self):
        texts = []
        for threads in ("1", "2"):
            with serving(*DUMMY, "--seed", "3", "--threads", threads) as server:
                body = {"prompt": [5, 6, 7], "max_tokens": 8, "temperature": 0, "ignore_eos": True}
                with server.post("/v1/completions", body) as answer:
                    texts.append(json.load(answer)["choices"][0]["text"])
        self.assertEqual(texts[0], texts[1])

    def test_serves_token_ids(self):
        with serving(TINY_MODEL, "--load-format", "dummy", "--skip-tokenizer-init", "--max-model-len",
                     "2K") as server:
            body = {"prompt": [5, 6, 7], "max_tokens": 4, "return_token_ids": True, "ignore_eos": True}
            with server.post("/v1/completions", body) as answer:
                self.assertEqual(len(json.load(answer)["choices"][0]["token_ids"]), 4)
            with urllib.request.urlopen(server.address + "/v1/models") as answer:
                self.assertEqual(json.load(answer)["data"][0]["max_model_len"], 2048)

    def test_reference_precision_and_scalar_kernels(self):
        with serving(*DUMMY, "--precision", "reference", "--kernels", "scalar") as server:
            with server.post("/v1/completions", {"prompt": "hello", "max_tokens": 2}) as answer:
                self.assertEqual(answer.status, 200)

    def test_ends_while_it_loads(self):
        """Random weights of some size take seconds; nothing is served yet, so nothing is waited for."""
        with open(os.path.join(TINY_MODEL, "config.json"), encoding="utf-8") as file:
            config = json.load(file)
        config.update(hidden_size=2048, moe_intermediate_size=2048, n_routed_experts=96)
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
                json.dump(config, file)
            process = subprocess.Popen([FULGUR, "serve", folder, "--load-format", "dummy", "--skip-tokenizer-init",
                                        "--port", "0"], stderr=subprocess.PIPE, text=True)
            while "weights are random" not in process.stderr.readline():
                self.assertIsNone(process.poll())
            process.send_signal(signal.SIGTERM)
            self.assertIn("stopped before serving", process.stderr.read())
            process.stderr.close()
            self.assertEqual(process.wait(10), 128 + signal.SIGTERM)

    def test_both_signals_end_it(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with scripted({"text": "x"}) as server:
                server.signal(number)
                self.assertEqual(server.wait(), 0)

    def test_aborts_at_once_without_a_timeout(self):
        with scripted(slow_answer(1000, 20)) as server:
            with server.post("/v1/chat/completions", CHAT) as answer:
                answer.readline()
                start = time.monotonic()
                self.assertEqual(server.stop(), 0)
                self.assertLess(time.monotonic() - start, 5)

    def test_drains(self):
        with scripted(slow_answer(60, 20), flags=["--shutdown-timeout", "20"]) as server:
            with server.post("/v1/chat/completions", CHAT) as answer:
                answer.readline()
                server.signal()
                self.assertIn(b"data: [DONE]", answer.read())
            self.assertEqual(server.wait(), 0)
            self.assertIn("1 requests are running and get 20 s", "".join(server.log))

    def test_second_signal_ends_it_at_once(self):
        with scripted(slow_answer(1000, 20), flags=["--shutdown-timeout", "100"]) as server:
            with server.post("/v1/chat/completions", CHAT) as answer:
                answer.readline()
                server.signal()
                self.assertTrue(wait_until(lambda: "shutting down" in "".join(server.log)))
                time.sleep(0.5)
                server.signal()
                self.assertEqual(server.wait(5), 128 + signal.SIGTERM)

    def test_signal_and_its_echo_count_once(self):
        """timeout(1) signals its child and then the group."""
        with scripted(slow_answer(60, 20), flags=["--shutdown-timeout", "20"]) as server:
            with server.post("/v1/chat/completions", CHAT) as answer:
                answer.readline()
                server.signal()
                server.signal()
                self.assertIn(b"data: [DONE]", answer.read())
            self.assertEqual(server.wait(), 0)


if __name__ == "__main__":
    unittest.main()
