"""`fulgur deploy check`: published commands, one command for each rule, scripts and folders."""
import glob
import json
import os
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FULGUR = os.environ.get("FULGUR", os.path.join(ROOT, "build/release/fulgur"))
COMMANDS = os.path.join(ROOT, "tests/cli/commands")

BASE = ["vllm", "serve", "/models/DeepSeek-V4-Flash-0731-w8a8", "--quantization", "ascend", "--tokenizer-mode",
        "deepseek_v4", "--tensor-parallel-size", "4", "--data-parallel-size", "4", "--enable-expert-parallel",
        "--block-size", "128", "--max-num-seqs", "32", "--max-num-batched-tokens", "8192"]
MTP_BASE = ["/models/DeepSeek-V4-Flash-w8a8-mtp" if word.startswith("/models") else word for word in BASE]
DSPARK = ["--speculative-config", '{"method": "dspark", "num_speculative_tokens": 7}']
HYBRID = "--no-disable-hybrid-kv-cache-manager"


def transfer(role="kv_consumer", **changes):
    sizes = {"prefill": {"dp_size": 4, "tp_size": 4}, "decode": {"dp_size": 4, "tp_size": 4}}
    config = {"kv_connector": "MooncakeHybridConnector", "kv_role": role, "kv_port": "30000", "engine_id": "0",
              "kv_connector_extra_config": sizes}
    config.update(changes)
    return ["--kv-transfer-config", json.dumps(config)]


DECODE = BASE + [HYBRID, "--no-enable-prefix-caching"]
PREFILL = BASE + [HYBRID, "--enforce-eager"]


def extra(**values):
    return ["--additional-config", json.dumps(values)]


# What each rule is called, and a command that breaks it and nothing else.
RULES = [
    ("model-missing", ["vllm", "serve", "--block-size", "32", "--enable-expert-parallel"]),
    ("loader-bool-as-text", BASE + ["--model-loader-extra-config", '{"enable_multithread_load": "true"}']),
    ("loader-threads", BASE + ["--model-loader-extra-config", '{"enable_multithread_load": true, "num_threads": 0}']),
    ("loader-unknown-key", BASE + ["--model-loader-extra-config", '{"threads": 8}']),
    ("loader-prefetch-conflict", BASE + ["--model-loader-extra-config", '{"enable_multithread_load": true}',
                                         "--safetensors-load-strategy", "prefetch"]),
    ("bool-as-text", BASE + extra(enable_cpu_binding="true")),
    ("bool-as-text", BASE + extra(ascend_compilation_config={"enable_npugraph_ex": "True"})),
    ("json-quotes-lost", BASE + ["--speculative-config", "{method:dspark,num_speculative_tokens:7}"]),
    ("json-quotes-lost", BASE + ["--speculative-config", "{method:", "dspark}"]),
    ("mtp-on-dspark-checkpoint", BASE + ["--speculative-config", '{"method": "mtp", "num_speculative_tokens": 1}']),
    ("dspark-on-mtp-checkpoint", MTP_BASE + DSPARK),
    ("dspark-draft-length", BASE + ["--speculative-config", '{"method": "dspark", "num_speculative_tokens": 4}']),
    ("draft-length", MTP_BASE + ["--speculative-config", '{"method": "mtp", "num_speculative_tokens": 0}']),
    ("dspark-dsa-cp", BASE + DSPARK + extra(enable_dsa_cp=True)),
    ("tokenizer-mode", [word for word in BASE if word not in ("--tokenizer-mode", "deepseek_v4")]),
    ("tool-parser-missing", BASE + ["--enable-auto-tool-choice"]),
    ("quantization-missing", [word for word in BASE if word not in ("--quantization", "ascend")]),
    ("block-size", ["16" if word == "128" else word for word in BASE]),
    ("retention-interval", BASE + ["--prefix-cache-retention-interval", "4096"]),
    ("hybrid-cache-off", BASE + ["--disable-hybrid-kv-cache-manager"]),
    ("hybrid-cache-off-by-connector", BASE + ["--enforce-eager"] + transfer("kv_producer")),
    ("budget-below-sequences", BASE + ["--max-num-batched-tokens", "16"]),
    ("budget-below-length", BASE + ["--no-enable-chunked-prefill", "--max-model-len", "131072"]),
    ("memory-share", BASE + ["--gpu-memory-utilization", "90"]),
    ("graph-sizes", BASE + extra(enable_shared_expert_dp=True) +
     ["--compilation-config", '{"cudagraph_capture_sizes": [4, 6, 8]}']),
    ("decode-budget", DECODE + transfer() + DSPARK + ["--max-num-batched-tokens", "32"]),
    ("shared-expert-dp", BASE + extra(enable_shared_expert_dp=True) + ["--tensor-parallel-size", "1"]),
    ("sequence-parallel", BASE + extra(enable_flashcomm1=True) + ["--tensor-parallel-size", "1"]),
    ("prefill-context-parallel", BASE + ["--prefill-context-parallel-size", "2"]),
    ("fine-grained-tp", BASE + extra(finegrained_tp_config={"lmhead_tensor_parallel_size": 3})),
    ("expert-parallel-off", [word for word in BASE if word != "--enable-expert-parallel"]),
    ("two-balancers", BASE + ["--data-parallel-hybrid-lb", "--data-parallel-external-lb"]),
    ("headless-with-api", BASE + ["--headless", "--api-server-count", "2"]),
    ("connector-unknown", PREFILL + transfer("kv_producer", kv_connector="mooncake")),
    ("connector-missing", PREFILL + transfer("kv_producer", kv_connector=None)),
    ("connector-without-hybrid", PREFILL + transfer("kv_producer", kv_connector="MooncakeConnectorV1")),
    ("role", PREFILL + transfer("producer")),
    ("transfer-unknown-key", PREFILL + transfer("kv_producer", port=1)),
    ("failure-policy-nested", PREFILL + transfer("kv_producer", kv_connector_extra_config={
        "kv_load_failure_policy": "fail"})),
    ("failure-policy-recompute", PREFILL + transfer("kv_producer", kv_load_failure_policy="recompute")),
    ("own-size", PREFILL + transfer("kv_producer", kv_connector_extra_config={
        "prefill": {"dp_size": 8, "tp_size": 4}, "decode": {"dp_size": 4, "tp_size": 4}})),
    ("tensor-parallel-ratio", PREFILL + transfer("kv_producer", kv_connector_extra_config={
        "prefill": {"dp_size": 4, "tp_size": 4}, "decode": {"dp_size": 2, "tp_size": 8}})),
    ("decode-pipeline", DECODE + transfer() + ["--pipeline-parallel-size", "2"]),
    ("recompute-on-prefill", PREFILL + transfer("kv_producer") + extra(recompute_scheduler_enable=True)),
    ("recompute-on-mixed", BASE + extra(recompute_scheduler_enable=True)),
    ("balance-with-connector", PREFILL + transfer("kv_producer") +
     extra(scheduler_config={"enable_balance_scheduling": True})),
    ("short-first", DECODE + transfer() + extra(scheduler_config={"short_request_first_config": {}})),
    ("prefix-cache-on-decode", BASE + [HYBRID] + transfer()),
    ("fine-grained-tp-needs-recompute", DECODE + transfer() +
     extra(finegrained_tp_config={"oproj_tensor_parallel_size": 4})),
    ("dyntra-balancer", BASE + extra(scheduler_config={"dyntra_lb_config": {}})),
    ("dyntra-balancer", DECODE + transfer() + extra(scheduler_config={"dyntra_lb_config": {}}) +
     ["--data-parallel-size-local", "2"]),
    ("dyntra-balancer", DECODE + transfer(kv_connector_extra_config={}) + ["--data-parallel-size", "1"] +
     extra(scheduler_config={"dyntra_lb_config": {}})),
    ("eplb-mixed", BASE + ["--enable-eplb"] + extra(eplb_config={"dynamic_eplb": True})),
    ("eplb-policy", BASE + extra(eplb_config={"eplb_policy_type": 4})),
    ("eplb-map", BASE + extra(eplb_config={"expert_map_path": "/maps/experts"})),
    ("fused-mc2-with-multistream", BASE + extra(enable_fused_mc2=1, multistream_overlap_shared_expert=True)),
    ("fused-mc2-with-hierarchy", BASE + extra(enable_fused_mc2=1, enable_mc2_hierarchy_comm=True)),
    ("prefill-mc2-budget", BASE + extra(enable_prefill_mc2=True)),
    ("kv-nz", BASE + extra(enable_kv_nz=True)),
    ("metaserver-address", PREFILL + transfer("kv_producer", kv_connector_extra_config={
        "metaserver": "http://0.0.0.0:9000/v1/metaserver"})),
    ("metaserver-address", PREFILL + transfer("kv_producer", kv_connector_extra_config={"metaserver": "http://:9000"})),
    ("connector-without-hybrid", PREFILL + transfer("kv_producer", kv_connector="MultiConnector",
                                                    kv_connector_extra_config={"connectors": [
                                                        {"kv_connector": "MooncakeConnectorV1",
                                                         "kv_role": "kv_producer"}]})),
    ("admission-reserve", BASE + ["--max-num-batched-tokens", "65536"]),
    ("decode-context-parallel", BASE + ["--decode-context-parallel-size", "2"]),
    ("unknown-flag", BASE + ["--max-num-sequences", "3"]),
    ("value-missing", BASE + ["--port"]),
    ("stray-argument", BASE + ["extra"]),
    ("value-not-accepted", BASE + ["--max-model-len", "0"]),
    ("value-not-accepted", BASE + ["--max-num-seqs", "many"]),
]


def check(*args):
    """Findings of `fulgur deploy check ARGS`, and the exit code."""
    answer = subprocess.run([FULGUR, "deploy", "check", "--json", *args], capture_output=True, text=True, timeout=60)
    if not answer.stdout:
        raise AssertionError(answer.stderr)
    return json.loads(answer.stdout)["findings"], answer.returncode


def rules(findings):
    return sorted({finding["rule"] for finding in findings})


class PublishedCommandsTest(unittest.TestCase):
    # enable_dsa_cp with DSpark; and a switch that moved into the configuration.
    PITFALLS = {"tutorial_04.sh": ["dspark-dsa-cp"], "tutorial_05.sh": ["deprecated-variable", "dspark-dsa-cp"]}

    def test_known_pitfalls_and_nothing_else(self):
        scripts = sorted(glob.glob(os.path.join(COMMANDS, "*.sh")))
        self.assertEqual(len(scripts), 9)
        for script in scripts:
            name = os.path.basename(script)
            with self.subTest(script=name):
                findings, code = check(script)
                self.assertEqual(rules(findings), self.PITFALLS.get(name, []), findings)
                self.assertEqual(code, 1 if name in self.PITFALLS else 0)

    def test_lines(self):
        findings, _ = check(os.path.join(COMMANDS, "tutorial_04.sh"))
        with open(findings[0]["file"], encoding="utf-8") as file:
            self.assertIn("--additional-config", file.readlines()[findings[0]["line"] - 1])


class RulesTest(unittest.TestCase):
    def test_good_commands(self):
        for command in (BASE, BASE + DSPARK, MTP_BASE, PREFILL + transfer("kv_producer"), DECODE + transfer()):
            self.assertEqual(check("--", *command), ([], 0))

    def test_each_rule(self):
        for rule, command in RULES:
            with self.subTest(rule=rule):
                findings, code = check("--", *command)
                self.assertIn(rule, rules(findings))
                self.assertLessEqual(len(rules(findings)), 2, findings)
                for finding in findings:
                    self.assertTrue(finding["why"] and finding["fix"], finding)
                severe = any(finding["severity"] == "error" for finding in findings)
                self.assertEqual(code, 1 if severe else 0)

    def test_image(self):
        old = "quay.io/ascend/vllm-ascend:v0.22.1rc1-a3"
        self.assertEqual(rules(check("--image", old, "--", *BASE, *DSPARK)[0]), ["image-without-dspark"])
        self.assertEqual(check("--image", old, "--", *BASE)[0], [])
        for good in ("quay.io/ascend/vllm-ascend:DeepSeekV4-flash-0731-a3", "x/vllm-ascend:v0.25.1-a3",
                     "x/vllm-ascend:nightly-main"):
            self.assertEqual(check("--image", good, "--", *BASE, *DSPARK)[0], [])

    def test_strict(self):
        command = [word for word in BASE if word != "--enable-expert-parallel"]
        self.assertEqual(check("--", *command)[1], 0)
        self.assertEqual(check("--strict", "--", *command)[1], 1)

    def test_text_says_where_why_and_how(self):
        answer = subprocess.run([FULGUR, "deploy", "check", os.path.join(COMMANDS, "tutorial_04.sh")],
                                capture_output=True, text=True, timeout=60)
        self.assertRegex(answer.stdout, r"tutorial_04.sh:\d+: error: enable_dsa_cp .*\[dspark-dsa-cp\]\n    fix: ")
        self.assertIn("1 serve command: 1 errors, 0 warnings", answer.stdout)


class ScriptsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    SERVE = ("vllm serve /m/DeepSeek-V4-Flash-0731-w8a8 --quantization ascend --tokenizer-mode deepseek_v4 "
             "--tensor-parallel-size 4 --data-parallel-size 4 --enable-expert-parallel ")

    def test_json_inside_bash_c_loses_its_quotes(self):
        path = self.write("launch.sh", 'docker run x/vllm-ascend:v0.25.1 bash -c "' + self.SERVE +
                          '--speculative-config {"method":"dspark","num_speculative_tokens":7}"\n')
        self.assertIn("json-quotes-lost", rules(check(path)[0]))
        kept = self.write("kept.sh", 'bash -c "' + self.SERVE +
                          "--speculative-config '{\\\"method\\\":\\\"dspark\\\",\\\"num_speculative_tokens\\\":7}'\"\n")
        self.assertEqual(check(kept)[0], [])

    def test_script_in_a_here_document(self):
        body = "#!/bin/bash\nexport LD_PRELOAD=x:$LD_PRELOAD\n" + self.SERVE + "--block-size 48\n"
        quoted = self.write("quoted.sh", "cat > s.sh <<'EOF'\n" + body + "EOF\nchmod +x s.sh\n")
        findings, _ = check(quoted)
        self.assertEqual(rules(findings), ["block-size", "value-not-accepted"])
        self.assertEqual({finding["line"] for finding in findings}, {4})
        bare = self.write("bare.sh", "cat > s.sh <<EOF\n" + body + "EOF\n")
        self.assertIn("document-expanded", rules(check(bare)[0]))

    def test_the_container_of_the_folder_counts(self):
        devices = "".join(f" --device /dev/davinci{i}" for i in range(8))
        self.write("launch.sh", "IMAGE=${IMAGE:-quay.io/ascend/vllm-ascend:v0.22.1rc1-a3}\ndocker run" + devices +
                   " -e VLLM_RPC_TIMEOUT=3600 \\\n  -v /x:/x \"$IMAGE\" bash /serve.sh\n")
        self.write("serve.sh", self.SERVE + """--speculative-config '{"method":"dspark","num_speculative_tokens":7}'""")
        findings, _ = check(self.folder)
        self.assertEqual(rules(findings), ["image-without-dspark", "rpc-timeout-unit", "too-few-devices"])

    def test_environment(self):
        path = self.write("env.sh", "export VLLM_PREFIX_CACHE_RETENTION_INTERVAL=4096\nexport http_proxy=http://p:1\n"
                          "export ASCEND_LAUNCH_BLOCKING=1\n" + self.SERVE + "--block-size 128\n")
        findings, _ = check(path)
        self.assertEqual([(f["rule"], f["line"]) for f in findings],
                         [("retention-interval", 1), ("http-proxy", 2), ("blocking-launch-with-graphs", 3)])
        self.assertIn("16384", findings[0]["fix"])

    def test_what_only_the_environment_shows(self):
        config = {"kv_connector": "MultiConnector", "kv_role": "kv_producer", "engine_id": "0", "kv_port": 30000,
                  "kv_connector_extra_config": {"connectors": [
                      {"kv_connector": "MooncakeHybridConnector", "kv_role": "kv_producer"},
                      {"kv_connector": "AscendStoreConnector", "kv_role": "kv_both"}]}}
        command = (self.SERVE + f"{HYBRID} --enforce-eager --kv-transfer-config '{json.dumps(config)}' "
                   """--additional-config '{"eplb_config": {"dynamic_eplb": true}}'\n""")
        path = self.write("bare.sh", command)
        self.assertEqual(rules(check(path)[0]), ["eplb-gate", "pool-hash-seed"])
        path = self.write("full.sh", "export PYTHONHASHSEED=0 DYNAMIC_EPLB=true\n" + command)
        self.assertEqual(check(path)[0], [])

    def test_a_layerwise_proxy_needs_an_address_of_its_own(self):
        proxy = "python3 load_balance_proxy_layerwise_server_example.py --host {} --port 1999 --prefiller-hosts 10.0.0.1\n"
        for host, found in (("0.0.0.0", ["metaserver-address"]), ("10.0.0.9", []), ("$LOCAL_IP", [])):
            path = self.write("proxy.sh", proxy.format(host) + self.SERVE + "\n")
            self.assertEqual(rules(check(path)[0]), found)

    def test_two_images(self):
        self.assertEqual(self.pair(), [])
        for node, image in (("p", "v0.25.1-a3"), ("d", "v0.26.0-a3")):
            self.write(f"{node}/launch.sh", f"docker run x/vllm-ascend:{image} bash /serve.sh\n")
        self.assertEqual(rules(check(self.folder)[0]), ["images-differ"])

    def pair(self, **decode):
        def command(role, port, engine, method="dspark", depth=7, block=128):
            sizes = {"prefill": {"dp_size": 4, "tp_size": 4}, "decode": {"dp_size": 4, "tp_size": 4}}
            config = {"kv_connector": "MooncakeHybridConnector", "kv_role": role, "kv_port": port,
                      "engine_id": engine, "kv_connector_extra_config": sizes}
            speculation = {"method": method, "num_speculative_tokens": depth}
            return (self.SERVE + f"{HYBRID} --block-size {block} --kv-transfer-config '{json.dumps(config)}' "
                    f"--speculative-config '{json.dumps(speculation)}'")
        self.write("p/serve.sh", command("kv_producer", 30000, "0") + " --enforce-eager\n")
        values = {"role": "kv_consumer", "port": 30100, "engine": "1", **decode}
        self.write("d/serve.sh", command(**values) + " --no-enable-prefix-caching\n")
        return rules(check(self.folder)[0])

    def test_nodes_that_do_not_fit_each_other(self):
        self.assertEqual(self.pair(), [])
        self.assertEqual(self.pair(port=30008), ["kv-ports-overlap"])
        self.assertEqual(self.pair(engine="0"), ["engine-id-twice"])
        self.assertEqual(self.pair(depth=5), ["dspark-depth-differs"])
        self.assertEqual(self.pair(block=64), ["prefill-decode-differ"])

    def test_nodes_that_start_the_same_rank(self):
        config = json.dumps({"kv_connector": "MooncakeHybridConnector", "kv_role": "kv_consumer", "kv_port": "30000",
                             "engine_id": "0"})
        template = ("export ASCEND_RT_VISIBLE_DEVICES=$1\nvllm serve /m/DeepSeek-V4-Flash-w8a8-mtp --quantization "
                    "ascend --tokenizer-mode deepseek_v4 --enable-expert-parallel --port $2 --data-parallel-size $3 "
                    "--data-parallel-rank $4 --data-parallel-address $5 --data-parallel-rpc-port $6 "
                    f"--tensor-parallel-size $7 {HYBRID} --no-enable-prefix-caching --kv-transfer-config '{config}'\n")

        def start(node, first):
            self.write(f"{node}/run_dp_template.sh", template)
            self.write(f"{node}/start.sh", "python3 launch_online_dp.py --dp-size 32 --tp-size 1 --dp-size-local 8 "
                       f"--dp-rank-start {first} --dp-address 10.0.0.1 --dp-rpc-port 12321 --vllm-start-port 7100\n")
        start("d0", 0)
        start("d1", 8)
        self.assertEqual(check(self.folder)[0], [])
        start("d1", 0)
        self.assertEqual(rules(check(self.folder)[0]), ["rank-twice"])

    def test_hostile_scripts_are_not_run(self):
        marker = os.path.join(self.folder, "ran")
        path = self.write("evil.sh", f"touch {marker}\n$(touch {marker})\n`touch {marker}`\n" + self.SERVE + "\n")
        check(path)
        self.assertFalse(os.path.exists(marker))

    def test_nothing_to_check(self):
        self.write("other.sh", "echo hello\n")
        for path, part in [(self.folder, "no `vllm serve`"), ("/nowhere", "there is no /nowhere")]:
            answer = subprocess.run([FULGUR, "deploy", "check", path], capture_output=True, text=True, timeout=60)
            self.assertEqual(answer.returncode, 1)
            self.assertIn(part, answer.stderr)
        for args in ([], ["a", "b"], ["--unknown", "a"]):
            answer = subprocess.run([FULGUR, "deploy", "check", *args], capture_output=True, text=True, timeout=60)
            self.assertEqual(answer.returncode, 2)


if __name__ == "__main__":
    unittest.main()
