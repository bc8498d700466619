"""`fulgur bench trial` with real servers: our scripted one, started by a shell command with one setting changed."""
import contextlib
import json
import os
import signal
import socket
import subprocess
import tempfile
import unittest
import urllib.request

from bench_process import FULGUR, PATIENT, TINY_TOKENIZER, load, run
from fulgur_process import wait_until

START = ("echo $$ > \"$PID_FILE\"; echo \"starting with $EXTRA\" >&2; "
         "exec \"$PROGRAM\" serve --scripted-output \"$SCRIPT\" --tokenizer \"$TOKENIZER\" --host 127.0.0.1 "
         "--port \"$PORT\" --served-model-name \"$NAME\" $EXTRA")
LOAD = ["--isl", "8", "--osl", "6", "--request-count", "3", "--warmup-request-count", "1", "--ui", "none",
        "--streaming", "--extra-inputs", "ignore_eos:true", *PATIENT]


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Place:
    """A folder with scripts of several speeds, and a plan for the servers that replay them."""

    def __init__(self, folder):
        self.folder = folder
        self.port = free_port()
        for name, delay in (("base", 20), ("fast", 2), ("slow", 200)):
            self.script(name, [{"text": "one two three four five six", "delay_ms": delay}])
        self.script("broken", [{"text": "one", "finish": "error"}])
        self.plan = {
            "format": "fulgur-trial-plan/1", "url": f"http://127.0.0.1:{self.port}", "start": START,
            "start_limit_s": 60, "stop_limit_s": 20,
            "base": {"SCRIPT": self.path("base.jsonl"), "NAME": "base", "EXTRA": "", "PROGRAM": FULGUR,
                     "TOKENIZER": TINY_TOKENIZER, "PORT": self.port, "PID_FILE": self.path("pid")},
            "run": LOAD, "variants": []}

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def script(self, name, lines):
        with open(self.path(name + ".jsonl"), "w", encoding="utf-8") as file:
            file.write("".join(json.dumps(line) + "\n" for line in lines))

    def add(self, name, change=None, **settings):
        self.plan["variants"].append({"id": name, "change": change or name, "set": settings})

    def add_script(self, name, change=None):
        self.add(name, change, SCRIPT=self.path(name + ".jsonl"), NAME=name)

    def arguments(self, *flags):
        with open(self.path("plan.json"), "w", encoding="utf-8") as file:
            json.dump(self.plan, file)
        return ["bench", "trial", self.path("plan.json"), "--out", self.path("out"), *flags]

    def trial(self, *flags):
        return run(*self.arguments(*flags), timeout=150)

    def model(self):
        """The name of the model that is being served; None if nothing answers."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/v1/models", timeout=5) as answer:
                return json.load(answer)["data"][0]["id"]
        except OSError:
            return None

    def stop_what_is_left(self):
        with contextlib.suppress(OSError, ValueError):
            with open(self.path("pid"), encoding="utf-8") as file:
                os.kill(int(file.read()), signal.SIGTERM)
        wait_until(lambda: self.model() is None)


@contextlib.contextmanager
def place():
    with tempfile.TemporaryDirectory() as folder:
        new = Place(folder)
        try:
            yield new
        finally:
            new.stop_what_is_left()


class TrialTest(unittest.TestCase):
    def test_decides_over_every_variant_and_brings_the_base_back(self):
        with place() as here:
            here.add_script("fast", "scripts without delay")
            here.add_script("slow")
            here.add("no_such_flag", EXTRA="--no-such-flag 1")
            here.add_script("broken")
            done = here.trial()
            self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
            self.assertEqual(here.model(), "base")
            trials = load(here.path("out"), "trials.json")
            self.assertEqual(trials["format"], "fulgur-trials/1")
            by_id = {trial["id"]: trial for trial in trials["trials"]}
            self.assertEqual(by_id["fast"]["decision"], "accepted", by_id["fast"])
            self.assertEqual(by_id["fast"]["change"], "scripts without delay")
            self.assertGreater(by_id["fast"]["delta_percent"], 100)
            self.assertEqual(by_id["slow"]["decision"], "rejected")
            self.assertLess(by_id["slow"]["delta_percent"], -50)
            self.assertIn("worse in custom c1", by_id["slow"]["reason"])
            broken_start = by_id["no_such_flag"]
            self.assertEqual(broken_start["decision"], "rejected")
            self.assertIn("did not start: the start command ended with 2", broken_start["reason"])
            self.assertIn("starting with --no-such-flag", broken_start["reason"])
            self.assertNotIn("delta_percent", broken_start)
            self.assertEqual(by_id["broken"]["decision"], "rejected")
            self.assertRegex(by_id["broken"]["reason"], "requests failed, with the base 0 of")
            self.assertEqual([run["variant"] for run in trials["runs"]],
                             ["base", "fast", "base", "slow", "base", "no_such_flag", "base", "broken", "base"])
            self.check_files(here, done)

    def check_files(self, here, done):
        with open(here.path("out", "trials.md"), encoding="utf-8") as file:
            page = file.read()
        self.assertIn("| scripts without delay | accepted |", page)
        self.assertIn("Servers that did not start", page)
        self.assertIn(page, done.stdout)
        self.assertTrue(os.path.exists(here.path("out", "runs", "02-fast", "profile_export_aiperf.json")))
        self.assertTrue(os.path.exists(here.path("out", "logs", "06-no_such_flag.log")))
        compared = run("bench", "aggregate", "--system", "base=" + here.path("out", "runs", "01-base"), "--trials",
                       here.path("out", "trials.json"), "--json", here.path("comparison.json"))
        told = load(here.folder, "comparison.json")["trials"]
        self.assertEqual([trial["decision"] for trial in told], ["accepted", "rejected", "rejected", "rejected"],
                         compared.stderr)

    def test_an_interruption_keeps_what_was_measured_and_restores_the_base(self):
        with place() as here:
            here.add_script("fast")
            here.add_script("slow")
            with open(here.path("log"), "w", encoding="utf-8") as log:
                process = subprocess.Popen([FULGUR, *here.arguments()], stdout=log, stderr=log)

            def said(words):
                with open(here.path("log"), encoding="utf-8") as file:
                    return words in file.read()

            try:
                self.assertTrue(wait_until(lambda: said("04-slow: measuring"), 120))
                self.assertTrue(wait_until(lambda: here.model() == "slow"))
                process.send_signal(signal.SIGINT)
                self.assertEqual(process.wait(60), 4)
            finally:
                if process.poll() is None:
                    process.kill()
                    process.wait()
            self.assertEqual(here.model(), "base")
            trials = load(here.path("out"), "trials.json")
            self.assertTrue(trials["interrupted"])
            self.assertEqual([run["run"] for run in trials["runs"]], ["01-base", "02-fast", "03-base"])
            decisions = {trial["id"]: trial["decision"] for trial in trials["trials"]}
            self.assertEqual(decisions["slow"], "undecided")

    def test_leaves_nothing_behind_if_asked(self):
        with place() as here:
            here.add_script("fast")
            here.plan["rounds"] = 1
            self.assertEqual(here.trial("--leave", "stopped").returncode, 0)
            self.assertIsNone(here.model())

    def test_a_base_that_does_not_start_ends_the_trial(self):
        with place() as here:
            here.plan["base"]["EXTRA"] = "--no-such-flag"
            here.add("other", EXTRA="")
            done = here.trial()
            self.assertEqual(done.returncode, 1)
            self.assertIn("the base did not start: the start command ended with 2", done.stderr)
            self.assertIn("starting with --no-such-flag", done.stderr)

    def test_refuses_an_address_that_is_taken(self):
        with place() as here, socket.create_server(("127.0.0.1", here.port)) as taken:
            here.add_script("fast")
            server = subprocess.Popen(["python3", "-c", "import http.server, socket, sys\n"
                                       "s = http.server.HTTPServer(('127.0.0.1', 0), "
                                       "http.server.BaseHTTPRequestHandler, bind_and_activate=False)\n"
                                       "s.socket = socket.socket(fileno=int(sys.argv[1]))\n"
                                       "s.serve_forever()", str(taken.fileno())], pass_fds=[taken.fileno()],
                                      stderr=subprocess.DEVNULL)
            try:
                done = here.trial()
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn("something answers at", done.stderr)
            finally:
                server.kill()
                server.wait()

    def test_says_what_is_wrong_with_plan_and_load(self):
        with place() as here:
            here.add_script("fast")
            here.plan["run"] = ["--osl", "many"]
            done = here.trial()
            self.assertEqual(done.returncode, 2)
            self.assertIn("\"run\" of " + here.path("plan.json"), done.stderr)
            here.plan["run"] = ["--url", "http://other:1"]
            self.assertIn("--url is chosen by the trial", here.trial().stderr)
            here.plan["run"] = LOAD
            self.assertIn("there is no variant other", here.trial("--only", "other").stderr)
            done = here.trial("--dry-run")
            self.assertEqual(done.stdout, "7 runs: base, fast, base, fast, base, fast, base\n")
            self.assertFalse(os.path.exists(here.path("out")))
            os.mkdir(here.path("out"))
            here.script("out/file", [])
            done = here.trial()
            self.assertEqual(done.returncode, 1)
            self.assertIn("is not empty", done.stderr)


if __name__ == "__main__":
    unittest.main()
