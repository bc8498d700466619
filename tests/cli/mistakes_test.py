"""Every mistake in a command gets one clear sentence and exit code 2, before anything is loaded."""
import os
import socket
import tempfile
import unittest

from fulgur_process import DUMMY, TINY_MODEL, TINY_TOKENIZER, run, script_file

# Arguments after `serve`, and a part of the sentence.
SERVE_MISTAKES = [
    ([], "No model specified!"),
    (["--served-model-name", "x"], "No model specified!"),
    (["/nowhere/model"], "the model folder /nowhere/model does not exist"),
    (["deepseek-ai/DeepSeek-V4-Flash"], "if this is a name on a hub, download it first"),
    (["/tmp"], "/tmp has no config.json"),
    ([TINY_TOKENIZER], "tiny_tokenizer.json is a file; give the folder of a checkpoint"),
    ([TINY_MODEL], "there is no tokenizer at"),
    ([TINY_MODEL, "--skip-tokenizer-init"], "has no *.safetensors files"),
    ([TINY_MODEL, "extra"], "unexpected argument 'extra'"),
    ([*DUMMY, "--max-model-length", "5"], "did you mean --max-model-len?"),
    ([*DUMMY, "--enable-prefix-caching=yes"], "takes no value ('yes' was given)"),
    ([*DUMMY, "--enable-prefix-caching", "False"], "write --enable-prefix-caching or --no-enable-prefix-caching"),
    ([*DUMMY, "--max-model-len", "2000000"], "above what the model was made for, 1048576 tokens"),
    ([*DUMMY, "--max-num-seqs", "0"], "--max-num-seqs: '0' is not accepted"),
    ([*DUMMY, "--block-size", "48"], "one of 32, 64, 128, 256"),
    ([*DUMMY, "--block-size", "0"], "--block-size: '0' is not accepted"),
    ([*DUMMY, "--max-model-len", "0"], "--max-model-len: '0' is not accepted"),
    ([*DUMMY, "--max-logprobs", "-2"], "--max-logprobs: '-2' is not accepted"),
    ([*DUMMY, "--long-prefill-token-threshold", "-1"], "--long-prefill-token-threshold: '-1' is not accepted"),
    ([*DUMMY, "--num-gpu-blocks-override", "0"], "--num-gpu-blocks-override: '0' is not accepted"),
    ([*DUMMY, "--gpu-memory-utilization", "1.5"], "above 0 and at most 1"),
    ([*DUMMY, "--kv-cache-memory-bytes", "100K"], "the cache needs"),
    ([*DUMMY, "--num-gpu-blocks-override", "1"], "the cache needs"),
    ([*DUMMY, "--max-num-batched-tokens", "4", "--max-num-seqs", "8"], "is below --max-num-seqs 8"),
    ([*DUMMY, "--tensor-parallel-size", "2"], "--tensor-parallel-size 2: one process runs the whole model"),
    ([*DUMMY, "--pipeline-parallel-size", "2"], "--pipeline-parallel-size 2: one process"),
    ([*DUMMY, "--speculative-config", '{"method": "eagle3", "num_speculative_tokens": 1}'],
     'the method "eagle3" is not known here'),
    ([*DUMMY, "--speculative-config", '{"num_speculative_tokens": 0}'], "must be a positive integer, not 0"),
    ([*DUMMY, "--spec-tokens", "2", "--speculative-config", '{"num_speculative_tokens": 3}'], "drop one"),
    ([*DUMMY, "--kv-transfer-config", '{"kv_connector": "X", "kv_role": "kv_both"}'], "prefill and decode run in one"),
    ([*DUMMY, "--kv-transfer-config", "{kv_role:kv_both}"], "what arrived is <{kv_role:kv_both}>"),
    ([*DUMMY, "--enable-lora"], "--enable-lora: adapters are not supported"),
    ([*DUMMY, "--chat-template", "x.jinja"], "--chat-template x.jinja: the V4 prompt format is built in"),
    ([*DUMMY, "--tool-call-parser", "hermes"], "invalid tool call parser: hermes (chose from { deepseek_v4 })"),
    ([*DUMMY, "--model-loader-extra-config", '{"enable_multithread_load": "true"}'], "must be a bool"),
    ([*DUMMY, "--model-loader-extra-config", '{"enable_multithread_load": true}',
      "--safetensors-load-strategy", "prefetch"], "drop one of them"),
    ([*DUMMY, "--host", "no.such.host.invalid"], "--host no.such.host.invalid: "),
    ([*DUMMY, "--generation-config", "/nowhere"], "/nowhere has no generation_config.json"),
    ([*DUMMY, "--scripted-output", "/nowhere.jsonl"], "--scripted-output: /nowhere.jsonl does not exist"),
    ([*DUMMY, "--scripted-output", "/tmp"], "--scripted-output: /tmp is a folder; give a file of JSON lines"),
    ([*DUMMY, "--scripted-output", os.devnull], "/dev/null holds no answers; it needs JSON lines such as"),
    ([*DUMMY, "--uds", "/nowhere/s.sock"], "--uds /nowhere/s.sock: the folder /nowhere does not exist"),
    ([*DUMMY, "--uds", "/tmp"], "--uds /tmp: there is something else than a socket"),
    ([*DUMMY, "--uds", "/tmp/" + 110 * "s"], "the path is 115 bytes long; a socket's may have 107"),
    ([*DUMMY, "--ssl-certfile", "/nowhere.pem", "--ssl-keyfile", "/nowhere.pem"],
     "--ssl-certfile: cannot use \"/nowhere.pem\""),
    ([*DUMMY, "--ssl-keyfile", "/nowhere.pem"], "--ssl-certfile and --ssl-keyfile go together"),
    (["--config", "/nowhere.yaml"], "--config /nowhere.yaml: it cannot be read"),
    (["--config", "flags.json"], "Config file must be of a yaml/yml type."),
    (["--help=max-model-length"], "did you mean --help=max-model-len?"),
]

OTHER_MISTAKES = [
    ([], "usage:"),
    (["serv"], "did you mean serve?"),
    (["frobnicate"], "unknown subcommand 'frobnicate'; there are serve, plan, chat"),
    (["help", "nothing"], "no help on 'nothing'"),
    (["chat", "--temprature", "1"], "did you mean --temperature?"),
    (["chat", "hello"], "unexpected argument 'hello'"),
    (["chat", "--url", "ftp://127.0.0.1"], "--url: 'ftp://127.0.0.1' is not accepted; write http://HOST:PORT"),
    (["chat", "--url", "file:///etc/passwd"], "--url: 'file:///etc/passwd' is not accepted"),
    (["chat", "--url", "http://"], "--url: 'http://' is not accepted"),
    (["chat", "--url", "unix:"], "--url: 'unix:' is not accepted"),
    (["chat", "--temperature", "hot"], "--temperature: 'hot' is not accepted"),
]


class MistakesTest(unittest.TestCase):
    def check(self, args, sentence):
        with self.subTest(args=args):
            done = run(*args)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(sentence, done.stderr)
            self.assertEqual(done.stdout, "")
            for sign_of_a_crash in ("terminate", "what():", "invariant", "Traceback"):
                self.assertNotIn(sign_of_a_crash, done.stderr)
            errors = [line for line in done.stderr.splitlines() if line.startswith("error ") or ": error: " in line]
            self.assertLessEqual(len(errors), 1, done.stderr)

    def test_serve(self):
        for args, sentence in SERVE_MISTAKES:
            self.check(["serve", *args], sentence)

    def test_other_subcommands(self):
        for args, sentence in OTHER_MISTAKES:
            self.check(args, sentence)

    def test_script(self):
        for line, sentence in [({"text": 5}, "text"), ({"match": "x"}, "text"),
                               ({"text": "x", "finish": "soon"}, "finish")]:
            with script_file(line) as path:
                self.check(["serve", "--scripted-output", path, "--tokenizer", TINY_TOKENIZER], sentence)

    def test_wrong_tokenizer(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "tokenizer.json")
            with open(path, "w", encoding="utf-8") as file:
                file.write('{"model": 5}')
            self.check(["serve", TINY_MODEL, "--load-format", "dummy", "--tokenizer", folder], path)

    def test_config_file(self):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(f"model: {TINY_MODEL}\nmax-num-sequences: 4\n")
            file.flush()
            self.check(["serve", "--config", file.name], "did you mean --max-num-seqs?")

    def test_nothing_was_loaded(self):
        done = run("serve", *DUMMY, "--uds", "/nowhere/s.sock")
        self.assertNotIn("weights", done.stderr)

    def test_socket_in_use(self):
        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as other:
            path = os.path.join(folder, "s.sock")
            other.bind(path)
            other.listen()
            done = run("serve", *DUMMY, "--uds", path)
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"--uds {path}: another process listens there", done.stderr)

    def test_port_in_use(self):
        """No mistake of the command, but known before the model is loaded."""
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            port = str(other.getsockname()[1])
            done = run("serve", *DUMMY, "--host", "127.0.0.1", "--port", port)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"port {port} is in use by another process", done.stderr)


if __name__ == "__main__":
    unittest.main()
