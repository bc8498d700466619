"""Markdown and HTML of the report: one set of facts in two languages, nothing from elsewhere."""

import json
import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

VOID = {"meta", "input", "br", "hr", "img", "link", "path", "use", "rect", "circle", "polyline"}


class Page(HTMLParser):
    """Checks nesting, collects ids and attributes."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.tags, self.links = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        attrs = dict(attrs)
        if "id" in attrs:
            self.ids.append(attrs["id"])
        self.links += [attrs[k] for k in ("href", "src", "xlink:href") if k in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open and self.open[-1] == tag, (tag, self.open[-3:])
            self.open.pop()


def page_of(path):
    page = Page()
    page.feed(path.read_text())
    assert page.open == []
    return page


def test_page_stands_alone(made):
    page = page_of(made / "report.html")
    assert "script" not in page.tags and "link" not in page.tags and "img" not in page.tags
    assert all(link.startswith("#") for link in page.links)
    assert len(page.ids) == len(set(page.ids))
    assert {link[1:] for link in page.links} <= set(page.ids)


def test_both_languages_say_the_same_numbers(made):
    number = re.compile(r"\d+(?:\.\d+)?")
    english = (made / "report.md").read_text()
    chinese = (made / "report.zh.md").read_text()
    assert english.count("\n## ") == chinese.count("\n## ") == 15
    assert english.count("\n|") == chinese.count("\n|")
    rows = [[line for line in text.splitlines() if line.startswith("|")]
            for text in (english, chinese)]
    for a, b in zip(*rows):
        assert number.findall(a) == number.findall(b)


def test_published_sentences(made):
    text = (made / "report.md").read_text()
    assert "9 improved, 1 neutral, 2 slower" in text
    assert "2.91x in Coding Agent (16384,4096) C1" in text
    assert "passes 1 near C = 6.9" in text
    assert "reaches 0.18 to 0.59 of Qwen" in text
    assert "Differences besides the treatment: engine" in text
    assert "not slower up to C = 4" in text


def test_figures_are_xml_with_chinese_labels(made):
    for folder, label in (("report_files", "Concurrency"), ("report.zh_files", "并发")):
        figures = sorted((made / folder).glob("*.svg"))
        assert [f.stem for f in figures] == ["F1", "F2"]  # what the published numbers allow
        for figure in figures:
            root = ElementTree.fromstring(figure.read_text())
            text = "".join(root.itertext())
            assert label in text
            assert "WenQuanYi" in root.get("font-family")
        assert (made / folder / "F1.csv").read_text().startswith("panel,series,x,y,low,high")


def test_labels_are_never_markup_or_commands(fulgur, comparison_file, tmp_path):
    told = json.loads(comparison_file.read_text())
    evil = "<script>x</script>'`touch pwned`|=1+1\n[a](b)"
    for system in told["systems"]:
        if system["id"] == "dspark":
            system["label"] = evil
    path = tmp_path / "evil.json"
    path.write_text(json.dumps(told))
    fulgur("bench", "report", path, "--out", tmp_path / "out")
    html = (tmp_path / "out/report.html").read_text()
    assert "<script" not in html
    page_of(tmp_path / "out/report.html")
    markdown = (tmp_path / "out/report.md").read_text()
    assert "<script" not in markdown and "](b)" not in markdown.replace("\\](b)", "")
    assert not list(tmp_path.rglob("pwned"))


def test_a_missing_cell_stays_empty(fulgur, comparison_file, tmp_path):
    told = json.loads(comparison_file.read_text())
    told["cells"] = [cell for cell in told["cells"]
                     if (cell["system"], cell["scenario"], cell["concurrency"]) !=
                     ("dspark", "sum", 4)]
    told["contrasts"] = [c for c in told["contrasts"]
                         if (c["scenario"], c["concurrency"]) != ("sum", 4)]
    path = tmp_path / "missing.json"
    path.write_text(json.dumps(told))
    fulgur("bench", "report", path, "--md", tmp_path / "r.md", "--xlsx", tmp_path / "r.xlsx",
           "--lang", "en")
    row = next(line for line in (tmp_path / "r.md").read_text().splitlines()
               if line.startswith("| Summarization (1024,128) | C4"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[2] == "29.79" and cells[3] == "–" and "n/a" in cells
    import openpyxl
    sheet = openpyxl.load_workbook(tmp_path / "r.xlsx", data_only=True)["3-way-Throughput"]
    assert sheet["C9"].value == 29.79 and sheet["D9"].value is None
    assert sheet["E9"].value in (None, "") and sheet["J9"].value == "n/a"


def test_mistakes_are_told(fulgur, comparison_file, tmp_path):
    assert "nothing to write" in fulgur("bench", "report", comparison_file, expect=2).stderr
    gone = fulgur("bench", "report", tmp_path / "no.json", "--out", tmp_path, expect=1)
    assert "no.json" in gone.stderr
    (tmp_path / "cut.json").write_text('{"cells": [')
    assert "cut.json" in fulgur("bench", "report", tmp_path / "cut.json", "--out", tmp_path,
                                expect=1).stderr
    partial = fulgur("bench", "report", comparison_file, "--md", tmp_path / "r.md", "--xlsx",
                     "/proc/none/r.xlsx", expect=4)
    assert "/proc/none" in partial.stderr and (tmp_path / "r.md").exists()
