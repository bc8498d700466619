"""LibreOffice computes every formula of the workbook anew and must come to the results in the file.

The results in the file are first replaced, so that what is compared was computed by LibreOffice.
"""

import re
import shutil
import subprocess
import zipfile

import openpyxl
import pytest

RECALCULATE = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry">
<item oor:path="/org.openoffice.Office.Calc/Formula/Load"><prop oor:name="OOXMLRecalcMode"
 oor:op="fuse"><value>0</value></prop></item>
</oor:items>
"""


def spoil_results(source, target):
    """Copies a workbook with the result of every numeric formula set to 12345."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            data = old.read(name)
            if name.startswith("xl/worksheets/sheet"):
                data = re.sub(rb"</f><v>[-0-9.eE+]+</v>", b"</f><v>12345</v>", data)
            new.writestr(name, data)


def numbers_of_formulas(path, formulas):
    values = openpyxl.load_workbook(path, data_only=True)
    return {(sheet.title, cell.coordinate): values[sheet.title][cell.coordinate].value
            for sheet in formulas for row in sheet.iter_rows() for cell in row
            if isinstance(cell.value, str) and cell.value.startswith("=")}


@pytest.mark.skipif(shutil.which("soffice") is None, reason="LibreOffice is not installed")
def test_libreoffice_comes_to_the_same_results(made, tmp_path):
    profile = tmp_path / "profile" / "user"
    profile.mkdir(parents=True)
    (profile / "registrymodifications.xcu").write_text(RECALCULATE)
    spoiled = tmp_path / "spoiled.xlsx"
    spoil_results(made / "report.xlsx", spoiled)
    out = tmp_path / "out"
    subprocess.run(["soffice", f"-env:UserInstallation=file://{profile.parent}", "--headless",
                    "--convert-to", "xlsx", "--outdir", out, spoiled],
                   check=True, capture_output=True, timeout=300)
    formulas = openpyxl.load_workbook(made / "report.xlsx")
    expected = numbers_of_formulas(made / "report.xlsx", formulas)
    computed = numbers_of_formulas(out / "spoiled.xlsx", formulas)
    assert len(expected) > 100
    for place, value in expected.items():
        if isinstance(value, float) or isinstance(value, int):
            assert computed[place] == pytest.approx(value, rel=1e-12), place
        else:
            assert (computed[place] or "") == (value or ""), place
