"""The workbook, read back by openpyxl: sheets, numbers, formulas with results, charts, formats."""

import math
import zipfile

import openpyxl
import pytest


@pytest.fixture(scope="module")
def values(made):
    return openpyxl.load_workbook(made / "report.xlsx", data_only=True)


@pytest.fixture(scope="module")
def formulas(made):
    return openpyxl.load_workbook(made / "report.xlsx")


def as_text(cell):
    """A cell as the published table prints it."""
    if cell.value is None:
        return ""
    if cell.number_format == '0.00"x"':
        return f"{cell.value:.2f}x"
    return cell.value


def test_five_sheets_with_their_headers_and_widths(values, published):
    expected = published["workbook"]
    assert values.sheetnames == expected["sheets"]
    for name, headers in expected["headers"].items():
        if headers is None:
            continue
        sheet = values[name]
        assert [sheet.cell(3, i + 1).value for i in range(len(headers))] == headers
        for i, width in enumerate(expected["column_widths"][name]):
            letter = openpyxl.utils.get_column_letter(i + 1)
            assert sheet.column_dimensions[letter].width == pytest.approx(width, abs=1)


def test_published_throughput_table(values, published):
    sheet = values["3-way-Throughput"]
    for i, row in enumerate(published["workbook"]["expected_rows_3way"]):
        assert [as_text(sheet.cell(4 + i, 1 + j)) for j in range(7)] == row


def test_numbers_are_numbers(values):
    sheet = values["3-way-Throughput"]
    for row in range(4, 16):
        for column in "CDEFG":
            assert isinstance(sheet[f"{column}{row}"].value, (int, float))


def test_published_verdicts(values):
    sheet = values["3-way-Throughput"]
    verdicts = [sheet[f"J{row}"].value for row in range(4, 16)]
    assert verdicts.count("improved") == 9
    assert verdicts.count("neutral") == 1
    assert verdicts.count("REGRESSION") == 2
    assert [sheet[f"K{row}"].value for row in range(4, 16)] == [f"{v} (no variance)" for v in verdicts]


def test_geometric_means(values):
    sheet = values["3-way-Throughput"]
    means = [sheet[f"E{row}"].value for row in range(17, 21)]
    assert means == pytest.approx([1.481, 1.122, 2.215, 1.544], abs=5e-4)


def test_published_latencies(values, published):
    sheet = values["DSpark-ITL"]
    for i, cell in enumerate(published["cells"]):
        row = 4 + i
        if "inter_token_latency" not in cell:
            assert [sheet.cell(row, c).value for c in (3, 4)] == [None, None]
            assert sheet.cell(row, 5).value in (None, "")
            continue
        assert sheet.cell(row, 3).value == cell["inter_token_latency"]["baseline"]
        assert sheet.cell(row, 4).value == cell["inter_token_latency"]["dspark"]
        text = cell["published"]["itl_change_text"]
        assert f"-{100 * sheet.cell(row, 5).value:.0f}%" == text
        assert sheet.cell(row, 5).number_format == "-0%;+0%;0%"
    ttft = values["DSpark-TTFT"]
    assert [ttft.cell(4, c).value for c in (3, 4, 5)] == [272.4, 268.5, 318.9]
    assert ttft["G4"].value == 294.0
    assert ttft["C5"].value is None  # nothing published for C4: empty, not 0


def test_published_utilisation(values, published):
    sheet = values["Utilization"]
    for i, (metric, baseline, treatment) in enumerate(
            published["workbook"]["expected_rows_utilization"]):
        assert sheet.cell(4 + i, 1).value == metric
        for column, expected in ((2, baseline), (3, treatment)):
            digits = 0 if metric.endswith(("(MB)", "Samples")) else 1
            assert round(sheet.cell(4 + i, column).value, digits) == expected
    assert "change -17.0 points" in sheet["D5"].value


def test_config(values, formulas, published):
    sheet = values["Config"]
    keys = [sheet.cell(1 + i, 1).value for i in range(10)]
    assert keys == published["workbook"]["expected_config_keys"]
    names = {name: formulas.defined_names[name].attr_text
             for name in ("reg_threshold", "devices_baseline", "devices_treatment")}
    where = {name: sheet[text.split("!")[1].replace("$", "")].value for name, text in names.items()}
    assert where == {"reg_threshold": 0.05, "devices_baseline": 16, "devices_treatment": 16}
    text = [[cell.value for cell in row] for row in sheet.iter_rows()]
    assert any("confounder" in row and row[0] == "engine" for row in text)


def test_every_formula_has_its_result(formulas, values):
    count = 0
    for sheet in formulas:
        for row in sheet.iter_rows():
            for cell in row:
                if not (isinstance(cell.value, str) and cell.value.startswith("=")):
                    continue
                count += 1
                result = values[sheet.title][cell.coordinate].value
                assert result is None or isinstance(result, (int, float, str))
                assert not (isinstance(result, str) and result.startswith("#")), cell.coordinate
                assert not (isinstance(result, float) and math.isnan(result))
    assert count > 100


def test_charts_formats_and_panes(formulas, made):
    throughput = formulas["3-way-Throughput"]
    assert throughput.freeze_panes == "C4"
    assert throughput.page_setup.orientation == "landscape"
    ranges = {str(r.sqref) for r in throughput.conditional_formatting}
    assert {"E4:E15", "P4:P15"} <= ranges
    with zipfile.ZipFile(made / "report.xlsx") as archive:
        charts = [archive.read(n).decode() for n in archive.namelist() if "/charts/chart" in n]
    assert sum("<c:lineChart>" in chart for chart in charts) >= 3
    assert sum("<c:barChart>" in chart for chart in charts) >= 2
    assert any("<c:logBase" in chart for chart in charts)


def test_equal_input_gives_an_equal_file(fulgur, comparison_file, made, tmp_path):
    again = tmp_path / "again.xlsx"
    fulgur("bench", "report", comparison_file, "--xlsx", again, "--lang", "en")
    assert again.read_bytes() == (made / "report.xlsx").read_bytes()


def test_both_languages_in_the_headers(fulgur, comparison_file, tmp_path):
    path = tmp_path / "both.xlsx"
    fulgur("bench", "report", comparison_file, "--xlsx", path, "--lang", "both")
    book = openpyxl.load_workbook(path)
    assert book["3-way-Throughput"]["A3"].value == "Scenario / 场景"
    assert book.sheetnames[0] == "3-way-Throughput"
