"""`fulgur plan`: figures of a machine from a file or measured, mistakes in one sentence."""
import os
import tempfile
import unittest

from fulgur_process import ROOT, TINY_MODEL, run

FLASH = os.path.join(ROOT, "src/plan/testdata/deepseek_v4_flash")
MACHINE = os.path.join(ROOT, "docs/machines/300gbps.yaml")


class PlanTest(unittest.TestCase):
    def test_a_model_of_which_only_the_config_is_there(self):
        done = run("plan", FLASH, "--machine", MACHINE)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"weights: 15\d\.\d+ GB")
        self.assertRegex(done.stdout, r"\n +1M +[\d.]+ +[\d.]+ +[\d.]+")

    def test_a_machine_that_is_too_small(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write('{"cores": 8, "memory_gb": 64, "read_gbps": 50}')
            file.flush()
            done = run("plan", FLASH, "--machine", file.name)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stdout, r"does not fit: needs 1[56]\d\.\d+ GB for one user, has 64\.00 GB")

    def test_this_machine_and_the_same_memory_as_dry_run(self):
        done = run("plan", TINY_MODEL, "--contexts", "1000", "--stages")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"machine  .*: \d+ cores?, reads \d+ GB/s")
        dry = run("serve", TINY_MODEL, "--load-format", "dummy", "--skip-tokenizer-init", "--dry-run")
        line = next(line for line in dry.stdout.splitlines() if "sequence memory: " in line)
        self.assertIn(line, done.stdout)

    def test_mistakes(self):
        for args, sentence in [
                ([], "give the folder of a checkpoint"),
                (["/nowhere"], "the model folder /nowhere does not exist"),
                ([FLASH, "--machine", "/nowhere.yaml"], "cannot read the machine file /nowhere.yaml"),
                ([FLASH, "--machine", os.path.join(FLASH, "config.json")], "cores is missing"),
                ([FLASH, "--users", "many"], "--users 'many' is not accepted"),
                ([FLASH, "--user", "1"], "did you mean --users?")]:
            with self.subTest(args=args):
                done = run("plan", *args)
                self.assertEqual(done.returncode, 2, done.stdout)
                self.assertIn(sentence, done.stderr)
                self.assertEqual(len(done.stderr.splitlines()), 2)  # usage and the sentence


if __name__ == "__main__":
    unittest.main()
