"""`fulgur deploy render`: the scripts are sound, and what reaches docker and vllm is what was meant."""
import glob
import http.server
import json
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FULGUR = os.environ.get("FULGUR", os.path.join(ROOT, "build/release/fulgur"))
DSPARK_MODEL = "/data/models/DeepSeek-V4-Flash-0731-w8a8"
MTP_MODEL = "/data/models/DeepSeek-V4-Flash-w8a8-mtp"


def hosts(first, count):
    return [f"10.0.{first}.{i + 1}" for i in range(count)]


PAIR = ["--nic", "enp67s0f0np0", "--prefill-hosts", *hosts(1, 1), "--decode-hosts", *hosts(2, 1)]
EIGHT = ["--nic", "enp67s0f0np0", "--prefill-hosts", *hosts(1, 4), "--decode-hosts", *hosts(2, 4)]
RECIPES = [
    ("a3", "single-tp4dp4", DSPARK_MODEL, []),
    ("a3", "single-tp8", DSPARK_MODEL, []),
    ("a2", "single-tp8", DSPARK_MODEL, []),
    ("a3", "dspark", DSPARK_MODEL, []),
    ("a2", "dspark", DSPARK_MODEL, []),
    ("a3", "mtp", MTP_MODEL, []),
    ("a2", "mtp", MTP_MODEL, []),
    ("a3", "1m", DSPARK_MODEL, []),
    ("a3", "1m", MTP_MODEL, ["--speculation", "mtp"]),
    ("a3", "pd-a3-1p1d", DSPARK_MODEL, PAIR),
    ("a3", "pd-a3-1p1d", DSPARK_MODEL, [*PAIR, "--draft-tokens", "7"]),
    ("a3", "pd-a3-1p1d", MTP_MODEL, [*PAIR, "--speculation", "mtp", "--draft-tokens", "3"]),
    ("a2", "pd-a2-4p1d", MTP_MODEL, EIGHT),
    ("a2", "pd-1m", MTP_MODEL, EIGHT),
]

# Records its words. `docker run` then runs the container's command here, with /deploy where it was mounted.
FAKE_DOCKER = """#!/usr/bin/env python3
import json, os, subprocess, sys
words = sys.argv[1:]
with open(os.environ["RECORD"], "a") as file:
    file.write(json.dumps(["docker", *words]) + "\\n")
state = os.path.join(os.path.dirname(os.environ["RECORD"]), "container")
if words[0] == "pull":
    count = os.path.join(os.path.dirname(os.environ["RECORD"]), "pulls")
    tries = int(open(count).read()) if os.path.exists(count) else 0
    open(count, "w").write(str(tries + 1))
    sys.exit(0 if tries + 1 >= int(os.environ.get("PULL_AFTER", "1")) else 1)
if words[0] == "inspect":
    if not os.path.exists(state): sys.exit(1)
    print(open(state).read())
if words[0] == "logs":
    print("the last words of the server")
if words[0] == "run":
    open(state, "w").write(os.environ.get("STATE", "true"))
    mount = next(w.split(":")[0] for w in words if w.endswith(":/deploy:ro"))
    command = [w.replace("/deploy", mount) for w in words[words.index("bash"):]]
    subprocess.Popen(command)
"""
FAKE_VLLM = """#!/usr/bin/env python3
import json, os, sys, time
names = ("ASCEND_RT_VISIBLE_DEVICES", "HCCL_IF_IP", "HCCL_SOCKET_IFNAME", "VLLM_PREFIX_CACHE_RETENTION_INTERVAL")
environment = {name: os.environ[name] for name in names if name in os.environ}
with open(os.environ["RECORD"], "a") as file:
    file.write(json.dumps(["vllm", *sys.argv[1:], environment]) + "\\n")
time.sleep(float(os.environ.get("LIFE", "0")))
"""


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.record = os.path.join(self.folder, "record")
        tools = os.path.join(self.folder, "tools")
        os.mkdir(tools)
        for name, text in (("docker", FAKE_DOCKER), ("vllm", FAKE_VLLM)):
            path = os.path.join(tools, name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(path, 0o755)
        self.environment = {**os.environ, "PATH": tools + ":" + os.environ["PATH"], "RECORD": self.record, "PAUSE": "0.1"}

    def render(self, target, recipe, model, args, name="out"):
        output = os.path.join(self.folder, name)
        answer = subprocess.run([FULGUR, "deploy", "render", "--target", target, "--recipe", recipe, "--model-path",
                                 model, "--output", output, *args], capture_output=True, text=True, timeout=60)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        return output

    def run_script(self, path, *args, **environment):
        return subprocess.run(["bash", path, *args], env={**self.environment, **environment}, capture_output=True,
                              text=True, timeout=60)

    def records(self, program):
        if not os.path.exists(self.record):
            return []
        with open(self.record, encoding="utf-8") as file:
            words = [json.loads(line) for line in file if line.endswith("\n")]
        return [word[1:] for word in words if word[0] == program]

    def wait_for(self, condition, seconds=20):
        end = time.time() + seconds
        while not condition():
            self.assertLess(time.time(), end, "waited in vain")
            time.sleep(0.05)


def flags(words):
    """{flag: value or None} of a recorded serve command."""
    found = {}
    for i, word in enumerate(words):
        if isinstance(word, str) and word.startswith("--"):
            following = words[i + 1] if i + 1 < len(words) else "--"
            found[word] = None if isinstance(following, dict) or following.startswith("--") else following
    return found


class SoundScriptsTest(Folder):
    def test_every_recipe(self):
        for number, (target, recipe, model, args) in enumerate(RECIPES):
            with self.subTest(target=target, recipe=recipe, args=args[-2:]):
                output = self.render(target, recipe, model, args, f"out{number}")
                scripts = glob.glob(os.path.join(output, "**/*.sh"), recursive=True)
                self.assertGreaterEqual(len(scripts), 8)
                for script in scripts:
                    self.assertTrue(os.access(script, os.X_OK), script)
                    answer = subprocess.run(["bash", "-n", script], capture_output=True, text=True, timeout=60)
                    self.assertEqual(answer.returncode, 0, answer.stderr)
                check = subprocess.run([FULGUR, "deploy", "check", "--strict", output], capture_output=True, text=True,
                                       timeout=60)
                self.assertEqual(check.returncode, 0, check.stdout + check.stderr)
                self.assertIn("no findings", check.stdout)
                for readme in ("README.md", "README.zh.md"):
                    with open(os.path.join(output, readme), encoding="utf-8") as file:
                        text = file.read()
                    self.assertIn(model, text)
                    self.assertNotRegex(text, r"@[A-Z]+@")

    @unittest.skipUnless(shutil.which("shellcheck"), "shellcheck is not installed")
    def test_shellcheck(self):
        scripts = []
        for number, (target, recipe, model, args) in enumerate(RECIPES):
            output = self.render(target, recipe, model, args, f"out{number}")
            scripts += glob.glob(os.path.join(output, "**/*.sh"), recursive=True)
        answer = subprocess.run(["shellcheck", *scripts], capture_output=True, text=True, timeout=120)
        self.assertEqual(answer.returncode, 0, answer.stdout[:4000])


class SingleNodeTest(Folder):
    def serve(self):
        """A server that answers /health, and its port."""
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_):
                pass
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server.server_address[1]

    def test_json_arrives_unharmed_through_container_and_script(self):
        port = self.serve()
        output = self.render("a3", "dspark", DSPARK_MODEL, ["--port", str(port), "--served-name", "dsv4"])
        answer = self.run_script(os.path.join(output, "launch.sh"))
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertIn(f"port {port} serves", answer.stdout)
        self.wait_for(lambda: self.records("vllm"))

        run = next(words for words in self.records("docker") if words[0] == "run")
        devices = [run[i + 1] for i, word in enumerate(run) if word == "--device"]
        self.assertEqual(devices[:16], [f"/dev/davinci{i}" for i in range(16)])
        self.assertEqual(devices[16:], ["/dev/davinci_manager", "/dev/devmm_svm", "/dev/hisi_hdc"])
        self.assertIn("quay.io/ascend/vllm-ascend:DeepSeekV4-flash-0731-a3", run)
        self.assertIn(f"{DSPARK_MODEL}:{DSPARK_MODEL}:ro", run)

        words = self.records("vllm")[0]
        self.assertEqual(words[:2], ["serve", DSPARK_MODEL])
        given = flags(words)
        self.assertEqual(json.loads(given["--speculative-config"]),
                         {"method": "dspark", "num_speculative_tokens": 7, "enforce_eager": True})
        self.assertEqual(json.loads(given["--compilation-config"]), {"cudagraph_mode": "FULL_DECODE_ONLY"})
        self.assertEqual(json.loads(given["--additional-config"])["ascend_compilation_config"],
                         {"enable_npugraph_ex": True, "enable_static_kernel": False})
        self.assertEqual((given["--tensor-parallel-size"], given["--data-parallel-size"], given["--port"]),
                         ("4", "4", str(port)))
        self.assertEqual((given["--max-model-len"], given["--block-size"], given["--max-num-seqs"]),
                         ("131072", "128", "32"))
        self.assertEqual(given["--served-model-name"], "dsv4")
        self.assertNotIn("--model-loader-extra-config", given)
        self.assertNotIn("--attention_config.indexer_kv_dtype", given)  # as it was measured

        again = self.run_script(os.path.join(output, "launch.sh"))
        self.assertEqual(again.returncode, 1)
        self.assertIn("stop.sh", again.stderr)

    def test_the_command_is_understood_by_fulgur_itself(self):
        output = self.render("a3", "1m", DSPARK_MODEL, [])
        self.run_script(os.path.join(output, "serve.sh"))
        words = self.records("vllm")[0]
        self.assertEqual(words[-1]["VLLM_PREFIX_CACHE_RETENTION_INTERVAL"], "4096")
        answer = subprocess.run([FULGUR, *words[:-1], "--dry-run"], capture_output=True, text=True, timeout=60)
        self.assertEqual(answer.returncode, 0, answer.stderr)

    def test_a_container_that_stops_is_said_with_its_log(self):
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            port = unused.getsockname()[1]
        output = self.render("a3", "dspark", DSPARK_MODEL, ["--port", str(port)])
        answer = self.run_script(os.path.join(output, "launch.sh"), STATE="false")
        self.assertEqual(answer.returncode, 1)
        self.assertIn("the container has stopped", answer.stderr)
        self.assertIn("the last words of the server", answer.stderr)
        answer = self.run_script(os.path.join(output, "health.sh"), TIMEOUT="0")
        self.assertEqual(answer.returncode, 1)

    def test_pull_tries_again(self):
        output = self.render("a3", "dspark", DSPARK_MODEL, [])
        answer = self.run_script(os.path.join(output, "pull.sh"), PULL_AFTER="3")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertEqual(len(self.records("docker")), 3)


class DisaggregatedTest(Folder):
    def test_ranks_of_a_node(self):
        output = self.render("a3", "pd-a3-1p1d", DSPARK_MODEL, PAIR)
        for node, dp, tp, host in (("prefill-0", 4, 4, "10.0.1.1"), ("decode-0", 16, 1, "10.0.2.1")):
            with self.subTest(node=node):
                if os.path.exists(self.record):
                    os.remove(self.record)
                command = ["start_ranks.sh", "--dp-size", str(dp), "--tp-size", str(tp), "--dp-size-local", str(dp),
                           "--dp-rank-start", "0", "--dp-address", host, "--dp-rpc-port", "12321",
                           "--vllm-start-port", "7100"]
                with open(os.path.join(output, node, "launch.sh"), encoding="utf-8") as file:
                    self.assertIn("bash /deploy/" + " ".join(command), file.read())
                process = subprocess.Popen(["bash", os.path.join(output, node, command[0]), *command[1:]],
                                           env={**self.environment, "LIFE": "30"}, stderr=subprocess.DEVNULL)
                self.wait_for(lambda: len(self.records("vllm")) == dp, 60)
                process.terminate()
                process.wait(20)
                ranks = sorted(self.records("vllm"), key=lambda words: int(flags(words)["--data-parallel-rank"]))
                for rank, words in enumerate(ranks):
                    given = flags(words)
                    self.assertEqual(given["--port"], str(7100 + rank))
                    self.assertEqual(given["--data-parallel-rank"], str(rank))
                    self.assertEqual(given["--tensor-parallel-size"], str(tp))
                    self.assertEqual(given["--data-parallel-address"], host)
                    devices = ",".join(str(i) for i in range(rank * tp, (rank + 1) * tp))
                    self.assertEqual(words[-1]["ASCEND_RT_VISIBLE_DEVICES"], devices)
                    self.assertEqual(words[-1]["HCCL_IF_IP"], host)
                transfer = json.loads(given["--kv-transfer-config"])
                self.assertEqual(transfer["kv_connector"], "MooncakeHybridConnector")
                self.assertEqual(transfer["kv_role"], "kv_producer" if node == "prefill-0" else "kv_consumer")
                self.assertEqual(transfer["kv_connector_extra_config"],
                                 {"prefill": {"dp_size": 4, "tp_size": 4}, "decode": {"dp_size": 16, "tp_size": 1}})

    def test_one_rank_that_ends_ends_the_node(self):
        output = self.render("a3", "pd-a3-1p1d", DSPARK_MODEL, PAIR)
        answer = self.run_script(os.path.join(output, "prefill-0/start_ranks.sh"), "--dp-size", "2", "--dp-address",
                                 "127.0.0.1", LIFE="0")
        self.assertIn("a rank has ended", answer.stderr)

    def test_numbers_of_the_guides(self):
        def commands(recipe_args, name):
            output = self.render(*recipe_args, name=name)
            found = {}
            for template in glob.glob(os.path.join(output, "*/run_dp_template.sh")):
                if os.path.exists(self.record):
                    os.remove(self.record)
                self.run_script(template, "0", "7100", "4", "0", "10.0.0.1", "12321", "1")
                found[template.split("/")[-2]] = flags(self.records("vllm")[0])
            return found
        seven = commands(("a3", "pd-a3-1p1d", DSPARK_MODEL, [*PAIR, "--draft-tokens", "7"]), "seven")
        self.assertEqual((seven["decode-0"]["--max-num-seqs"], seven["decode-0"]["--max-num-batched-tokens"]),
                         ("32", "256"))
        for depth, tokens in (("1", "120"), ("3", "240")):
            mtp = commands(("a3", "pd-a3-1p1d", MTP_MODEL, [*PAIR, "--speculation", "mtp", "--draft-tokens", depth]),
                           "mtp" + depth)
            self.assertEqual((mtp["decode-0"]["--max-num-seqs"], mtp["decode-0"]["--max-num-batched-tokens"]),
                             ("60", tokens))
            self.assertEqual(json.loads(mtp["prefill-0"]["--speculative-config"])["num_speculative_tokens"], 1)
        four = commands(("a2", "pd-a2-4p1d", MTP_MODEL, EIGHT), "four")
        ports = {name: json.loads(given["--kv-transfer-config"]) for name, given in four.items()}
        self.assertEqual([ports[f"prefill-{i}"]["engine_id"] for i in range(4)], ["0", "1", "2", "3"])
        self.assertEqual([ports[f"prefill-{i}"]["kv_port"] for i in range(4)], ["30000", "30100", "30200", "30300"])
        self.assertEqual({ports[f"decode-{i}"]["kv_port"] for i in range(4)}, {"30400"})
        self.assertEqual({ports[f"decode-{i}"]["engine_id"] for i in range(4)}, {"4"})
        self.assertEqual({given["--attention_config.indexer_kv_dtype"] for given in four.values()}, {"int8"})

    def test_the_proxy_knows_every_rank(self):
        output = self.render("a2", "pd-a2-4p1d", MTP_MODEL, EIGHT)
        with open(os.path.join(output, "proxy.sh"), encoding="utf-8") as file:
            words = file.read().replace("\\\n", " ").split()
        start = words.index("--prefiller-hosts")
        prefill = words[start + 1:words.index("--prefiller-ports")]
        self.assertEqual(prefill, [host for host in hosts(1, 4) for _ in range(8)])
        ports = words[words.index("--decoder-ports") + 1:]
        self.assertEqual(ports, [str(7100 + i) for i in range(8)] * 4)
        starts = []
        for node in range(4):
            with open(os.path.join(output, f"decode-{node}/launch.sh"), encoding="utf-8") as file:
                text = file.read()
            starts.append(text.split("--dp-rank-start ")[1].split()[0])
            self.assertIn("--dp-address 10.0.2.1 ", text)
        self.assertEqual(starts, ["0", "8", "16", "24"])


class MistakesTest(Folder):
    def refuse(self, part, *args, target="a3", recipe="dspark", model=DSPARK_MODEL):
        answer = subprocess.run([FULGUR, "deploy", "render", "--target", target, "--recipe", recipe, "--model-path",
                                 model, "--output", os.path.join(self.folder, "bad"), *args], capture_output=True,
                                text=True, timeout=60)
        self.assertEqual(answer.returncode, 2, answer.stdout)
        self.assertIn(part, answer.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "bad")))

    def test_parameters_are_checked(self):
        self.refuse("unknown recipe", recipe="fast")
        self.refuse("is for a3, not for a2", target="a2", recipe="1m")
        self.refuse("--model-path", model="relative/path")
        self.refuse("--model-path", model="/models/$(reboot)")
        self.refuse("--host", "--host", "300.1.1.1")
        self.refuse("--container", "--container", "a;b")
        self.refuse("--image", "--image", "x y")
        self.refuse("--port", "--port", "80")
        self.refuse("5 to 7", "--draft-tokens", "3")
        self.refuse("no MTP head", recipe="mtp")
        self.refuse("no DSpark stages", model=MTP_MODEL)
        self.refuse("needs 1 --prefill-hosts, 0 given", recipe="pd-a3-1p1d")
        self.refuse("twice", "--nic", "e0", "--prefill-hosts", *["10.0.0.1"] * 4, "--decode-hosts", *hosts(2, 4),
                    target="a2", recipe="pd-a2-4p1d", model=MTP_MODEL)
        self.refuse("both a prefill and a decode", "--nic", "e0", "--prefill-hosts", "10.0.0.1", "--decode-hosts",
                    "10.0.0.1", recipe="pd-a3-1p1d")
        self.refuse("--nic is needed", "--prefill-hosts", "10.0.0.1", "--decode-hosts", "10.0.0.2",
                    recipe="pd-a3-1p1d")

    def test_a_folder_that_is_in_use_is_left_alone(self):
        output = self.render("a3", "dspark", DSPARK_MODEL, [])
        answer = subprocess.run([FULGUR, "deploy", "render", "--target", "a3", "--recipe", "mtp", "--model-path",
                                 MTP_MODEL, "--output", output], capture_output=True, text=True, timeout=60)
        self.assertEqual(answer.returncode, 1)
        self.assertIn("is not empty", answer.stderr)


if __name__ == "__main__":
    unittest.main()
