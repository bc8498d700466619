"""`fulgur sample` as a process: here, stopped by tag, and over HTTP from another one."""
import json
import os
import re
import signal
import subprocess
import tempfile
import time
import unittest

from fulgur_process import FULGUR, run


def lines(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def wait_for(condition, seconds=20):
    end = time.time() + seconds
    while not condition():
        if time.time() > end:
            raise AssertionError("waited in vain")
        time.sleep(0.05)


class SampleTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self, *args):
        process = subprocess.Popen([FULGUR, "sample", *args, "--folder", self.folder, "--devices", "none"],
                                   stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_for_a_time(self):
        answer = run("sample", "short", "--interval", "0.1", "--duration", "1s", "--folder", self.folder, "--devices",
                     "none")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        log = lines(self.path("util-short.jsonl"))
        self.assertEqual(log[0]["format"], "fulgur-util/1")
        self.assertAlmostEqual(log[-1]["end"]["ticks"] + log[-1]["end"]["missed"], 10, delta=2)
        self.assertIn("missed", answer.stdout)
        self.assertFalse(os.path.exists(self.path("util-short.pid")))

    def test_stop_by_tag(self):
        process = self.start("tagged", "--interval", "100ms")
        wait_for(lambda: os.path.exists(self.path("util-tagged.jsonl")))
        again = run("sample", "tagged", "--folder", self.folder, "--devices", "none")
        self.assertEqual(again.returncode, 1)
        self.assertIn("still runs", again.stderr)
        stopped = run("sample", "--stop", "tagged", "--folder", self.folder)
        self.assertEqual(stopped.returncode, 0, stopped.stderr)
        self.assertEqual(process.wait(10), 0)
        self.assertIn("end", lines(self.path("util-tagged.jsonl"))[-1])
        self.assertEqual(run("sample", "--stop", "tagged", "--folder", self.folder).returncode, 1)

    def test_ctrl_c(self):
        process = self.start("keys", "--interval", "100ms")
        process.stdout.readline()
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(10), 0)
        self.assertIn("end", lines(self.path("util-keys.jsonl"))[-1])

    def test_from_another_host(self):
        server = self.start("--serve", "127.0.0.1:0", "--api-key", "secret")
        port = re.search(r"port (\d+)", server.stdout.readline()).group(1)
        home = self.path("home")

        def remote(*args, key="secret"):
            return run("sample", "--remote", f"http://127.0.0.1:{port}", "--api-key", key, "--folder", home, *args)

        self.assertIn("401", remote("status", key="wrong").stderr)
        answer = remote("start", "far", "--interval", "50ms", "--devices", "none")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertTrue(json.loads(answer.stdout)["running"])
        time.sleep(0.5)
        self.assertGreater(json.loads(remote("stop").stdout)["ticks"], 3)
        self.assertRegex(remote("clock").stdout, r"offset -?[0-9.]+ ms, uncertainty [0-9.]+ ms")
        answer = remote("fetch", "far")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        fetched = lines(os.path.join(home, "util-far.jsonl"))
        self.assertLess(abs(fetched[0]["clock_offset_ns"]), 50e6)  # both are this machine's clock
        self.assertGreater(fetched[0]["clock_uncertainty_ns"], 0)
        self.assertEqual(fetched[1:], lines(self.path("util-far.jsonl"))[1:])
        self.assertEqual(remote("fetch", "nothing").returncode, 1)
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(10), 0)

    def test_mistakes(self):
        for args, part in [([], "name the log"), (["../x"], "is no tag"), (["x", "--interval", "soon"], "is no time"),
                           (["x", "--devices", "tpu"], "--devices"), (["--stop", "a", "--serve", ":1"], "exclude"),
                           (["--serve", "host"], "HOST:PORT"), (["--remote", "http://x", "dance"], "unknown action"),
                           (["--remote", "http://x"], "needs an action")]:
            with self.subTest(args=args):
                answer = run("sample", *args)
                self.assertEqual(answer.returncode, 2)
                self.assertIn(part, answer.stderr)


if __name__ == "__main__":
    unittest.main()
