"""Writes the loss curve (SVG) and prints the tables of a training run for the model card.

python -m demo_model.card --run DIR --out FOLDER [--report NAME=FILE ...] (run in tools/); the files come from evaluate
python -m demo_model.card --drafter DIR --out FOLDER
"""
import argparse
import json
import math
import pathlib

WIDTH, HEIGHT, LEFT, BOTTOM = 640, 280, 48, 36


def read_log(folder):
    """(losses [(step, tokens, cpu seconds, loss, accuracy)], tests [(step, {kind: rate})])."""
    losses, tests = {}, {}
    for line in (pathlib.Path(folder) / "log.jsonl").read_text().splitlines():
        r = json.loads(line)
        if "exact" in r:
            tests[r["step"]] = r["exact"]
        else:  # a resumed run repeats steps since its last checkpoint; the last record counts
            losses[r["step"]] = (r["step"], r["tokens"], r["cpu_seconds"], r["loss"], r["token_accuracy"])
    return [losses[k] for k in sorted(losses)], sorted(tests.items())


def curve(losses, legend="loss per answer token", tick=500):
    """[(step, loss)] on a logarithmic axis, as an SVG image."""
    last = losses[-1][0]
    low, high = math.log10(max(1e-3, min(loss for _, loss in losses) * 0.9)), math.log10(10)

    def place(step, loss):
        x = LEFT + (WIDTH - LEFT - 12) * step / last
        return f"{x:.1f},{(HEIGHT - BOTTOM) - (HEIGHT - BOTTOM - 12) * (math.log10(loss) - low) / (high - low):.1f}"

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" '
             'font-size="12"><rect width="100%" height="100%" fill="white"/>']
    for power in range(math.ceil(low), 2):
        y = place(0, 10.0**power).split(",")[1]
        parts.append(f'<path d="M{LEFT} {y}H{WIDTH - 12}" stroke="#ddd"/><text x="6" y="{y}">{10.0**power:g}</text>')
    for step in range(0, last + 1, tick):
        x = place(step, 1).split(",")[0]
        parts.append(f'<text x="{x}" y="{HEIGHT - 18}" text-anchor="middle">{step}</text>')
    points = " ".join(place(*point) for point in losses)
    parts.append(f'<polyline points="{points}" fill="none" stroke="#1f5fbf" stroke-width="1.5"/>'
                 f'<text x="{WIDTH // 2}" y="{HEIGHT - 4}" text-anchor="middle">optimiser steps; {legend}</text></svg>')
    return "\n".join(parts)


def table(losses, tests):
    """Markdown table of the run at the steps that were tested, and at the end."""
    kinds = list(tests[-1][1])
    at = {x[0]: x for x in losses}
    lines = ["| step | tokens | CPU s | loss | " + " | ".join(kinds) + " |", "|---" * (4 + len(kinds)) + "|"]
    for step, rates in tests:
        if step in at:
            _, tokens, seconds, loss, _ = at[step]
            lines.append(f"| {step} | {tokens / 1e6:.2f} M | {seconds} | {loss:.3f} | " +
                         " | ".join(f"{rates[k]:.2f}" if k in rates else "" for k in kinds) + " |")
    return "\n".join(lines)


def report_table(reports):
    """Markdown table of evaluation reports {name: document}: a row per measure, a column per report."""
    rows = {}
    for column, document in reports.items():
        for name, value in [*document["rates"].items(), *((k, v) for k, v in document.items() if isinstance(v, float))]:
            rows.setdefault(name, {})[column] = f"{value:.3f}" if "perplexity" in name else f"{100 * value:.1f} %"
    lines = ["| | " + " | ".join(reports) + " |", "|---" * (1 + len(reports)) + "|"]
    return "\n".join(lines + [f"| {n} | " + " | ".join(r.get(c, "") for c in reports) + " |" for n, r in rows.items()])


def drafter_card(folder, out):
    """Writes the loss curve of a drafter's run and prints the table of its log."""
    lines = (pathlib.Path(folder) / "log.jsonl").read_text().splitlines()
    records = {r["step"]: r for r in map(json.loads, lines)}
    points = [(step, records[step]["loss"]) for step in sorted(records)]
    (pathlib.Path(out) / "loss_drafter.svg").write_text(curve(points, "loss of the drafter", 100))
    print("| step | CPU s | loss | overlap with the trunk, draft by draft | tokens per verification | bias of the confidence |")
    print("|---|---|---|---|---|---|")
    for step, r in sorted(records.items()):
        if step % 100 == 0 or step in (points[0][0], points[-1][0]):
            print(f"| {step} | {r['cpu_seconds']} | {r['loss']:.2f} | {' '.join(f'{x:.2f}' for x in r['overlap'])} | "
                  f"{r['expected_length']:.2f} | {r['confidence_bias']:+.3f} |")


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    source = ap.add_mutually_exclusive_group(required=True)
    source.add_argument("--run")
    source.add_argument("--drafter", help="training folder of a drafter")
    ap.add_argument("--out", required=True)
    ap.add_argument("--report", action="append", default=[], help="NAME=FILE")
    args = ap.parse_args()
    if args.drafter:
        drafter_card(args.drafter, args.out)
        return
    losses, tests = read_log(args.run)
    (pathlib.Path(args.out) / "loss.svg").write_text(curve([(x[0], x[3]) for x in losses]))
    print(table(losses, tests))
    print("\n" + report_table({r.split("=")[0]: json.loads(pathlib.Path(r.split("=")[1]).read_text())
                               for r in args.report}))
    print(f"\n{losses[-1][0]} steps, {losses[-1][1]} tokens, {losses[-1][2]} CPU seconds")


if __name__ == "__main__":
    main()
