"""Published command lines are taken as printed, also by a link named vllm."""
import glob
import os
import re
import subprocess
import tempfile
import unittest

from fulgur_process import DUMMY, FULGUR, ROOT, TINY_MODEL, run

SCRIPTS = sorted(glob.glob(os.path.join(ROOT, "tests/cli/commands/*.sh")))
# What launch_online_dp.py passes: device, port, data-parallel size, rank, address, RPC port, tensor-parallel size.
ARGUMENTS = ["0", "7100", "4", "0", "10.0.0.1", "12890", "4"]


class Launcher:
    """A folder with a program called vllm, first in PATH."""

    def __init__(self, folder, dry_run):
        path = os.path.join(folder, "vllm")
        if dry_run:
            with open(path, "w", encoding="utf-8") as file:
                file.write(f'#!/bin/bash\nexec -a vllm {FULGUR} "$@" --dry-run\n')
            os.chmod(path, 0o755)
        else:
            os.symlink(FULGUR, path)
        self.environment = {**os.environ, "PATH": folder + ":" + os.environ["PATH"]}

    def run(self, script):
        return subprocess.run(["bash", script, *ARGUMENTS], env=self.environment, capture_output=True, text=True,
                              timeout=60)


class PublishedCommandsTest(unittest.TestCase):
    def test_dry_run_understands_every_flag(self):
        self.assertEqual(len(SCRIPTS), 9)
        with tempfile.TemporaryDirectory() as folder:
            launcher = Launcher(folder, dry_run=True)
            for script in SCRIPTS:
                with self.subTest(script=os.path.basename(script)):
                    done = launcher.run(script)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertIn("Every flag is understood. Serving would stop at", done.stdout)
                    self.assertIn("is not on this machine, so its memory is not known", done.stdout)
                    self.assertRegex(done.stdout, r"--max-num-seqs +\d+ +used")
                    self.assertRegex(done.stdout, r"--speculative-config +\{.*\} +used")
                    self.assertRegex(done.stdout, r"--quantization +ascend +no effect: ")
                    self.assertRegex(done.stdout, r"HCCL_OP_EXPANSION_MODE +AIV +no effect: |LD_PRELOAD")

    def test_serving_says_what_is_not_there(self):
        with tempfile.TemporaryDirectory() as folder:
            launcher = Launcher(folder, dry_run=False)
            for script in SCRIPTS:
                with self.subTest(script=os.path.basename(script)):
                    done = launcher.run(script)
                    self.assertEqual(done.returncode, 2, done.stderr)
                    self.assertIn("vllm: error: ", done.stderr)
                    self.assertRegex(done.stderr, r"--tensor-parallel-size \d+: one process")
                    self.assertNotIn("--speculative-config", done.stderr)


class DryRunTest(unittest.TestCase):
    def test_reads_the_checkpoint(self):
        done = run("serve", *DUMMY, "--dry-run", "--api-key", "secret", "-tp", "1", "--seed", "5")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("secret", done.stdout)
        self.assertRegex(done.stdout, r"--tensor-parallel-size +1 +used")
        self.assertRegex(done.stdout, r"sequence memory: \d+ bytes per token, [\d.]+ [kM]B per running request")
        self.assertRegex(done.stdout, r"pages of 256 tokens .* room for \d+ tokens")
        self.assertTrue(done.stdout.endswith("Every flag is understood.\n"))

    def test_takes_values_from_a_file(self):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(f"model: {TINY_MODEL}\nenable-chunked-prefill: false\nmax-num-batched-tokens: 8k\n"
                       "max-model-len: 4096\nserved-model-name: [a, b]\nmax-num-seqs: 4\n")
            file.flush()
            done = run("serve", "--config", file.name, "--max-num-seqs", "7", "--dry-run")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"--enable-chunked-prefill +false \(file\) +used")
        self.assertRegex(done.stdout, r"--served-model-name +a b \(file\) +used")
        self.assertRegex(done.stdout, r"--max-num-seqs +7 +used")

    def test_says_what_does_not_fit(self):
        done = run("serve", *DUMMY, "--kv-cache-memory-bytes", "100K", "--dry-run")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("does not fit: the cache needs", done.stdout)


class HelpTest(unittest.TestCase):
    def test_overview(self):
        for args in (["--help"], ["-h"], ["help"]):
            done = run(*args)
            self.assertEqual(done.returncode, 0)
            for subcommand in ("serve", "chat", "version"):
                self.assertIn(subcommand, done.stdout)

    def test_version(self):
        for args in (["version"], ["--version"], ["-v"]):
            self.assertRegex(run(*args).stdout, r"^fulgur \d+\.\d+\.\d+\n$")

    def test_serve(self):
        used = run("serve", "--help").stdout
        self.assertIn("--max-num-seqs N", used)
        self.assertNotIn("--quantization", used)
        self.assertIn("--quantization TEXT, -q", run("serve", "--help=all").stdout)
        self.assertIn("at once; more wait", run("serve", "--help=max_num_seqs").stdout)
        self.assertIn("--tensor-parallel-size N, -tp", run("serve", "--help=parallel").stdout)
        self.assertIn("parallel", run("serve", "--help=listgroup").stdout)
        self.assertEqual(used, run("help", "serve").stdout)

    def test_chat(self):
        self.assertIn("--url TEXT", run("chat", "--help").stdout)

    def test_every_listed_choice_is_taken(self):
        """No value that --help lists is refused later as unknown."""
        for line in run("serve", "--help=all").stdout.splitlines():
            found = re.match(r"  (--\S+) \{(.*)\}", line)
            for choice in found.group(2).split("|") if found else []:
                flag = found.group(1)
                done = run("serve", *DUMMY, flag, choice, "--dry-run", "--fingerprint-value", "x")
                self.assertEqual(done.returncode, 0, (flag, choice, done.stderr))

    def test_flags_page_is_current(self):
        for language in ("en", "zh"):
            with open(os.path.join(ROOT, f"docs/{language}/flags.md"), encoding="utf-8") as file:
                self.assertEqual(file.read(), run("help", "--markdown", language).stdout,
                                 f"run: fulgur help --markdown {language} > docs/{language}/flags.md")


if __name__ == "__main__":
    unittest.main()
