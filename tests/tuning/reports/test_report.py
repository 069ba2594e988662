"""All files of a report, from studies of any kind and state."""

import csv
import random
import re

import made_studies as made
import pytest
import yaml

from lit_sb3_ray.tuning.reports.record import record
from lit_sb3_ray.tuning.reports.report import table_name, write_reports

PARAMS = {"learning_rate": 1e-3}
ODD = {key: [1] for key in made.ATTRIBUTES}


def test_a_report_has_its_table_best_entry_and_page(tmp_path):
    study = made.fill(made.new_study(), 20)
    files = write_reports(study, tmp_path / "deep" / "folder")
    assert files.problems == ()
    assert re.fullmatch(r"report_CartPole-v1_20-trials-10000-tpe-asha_\d+\.csv", files.table.name)
    with files.table.open() as table:
        rows = list(csv.DictReader(table))
    assert [row["number"] for row in rows] == [str(number) for number in range(20)]
    assert rows[6]["user_attrs_failure"] == "ValueError: the joint is broken"
    assert yaml.safe_load(files.best.read_text())["CartPole-v1"]["n_timesteps"] == 10000
    page = files.page.read_text(encoding="utf-8")
    assert page.count("<svg") == 3 + len(made.SPACE)
    assert "CartPole-v1:" in page
    assert set(files.paths) == {path for path in (tmp_path / "deep" / "folder").rglob("*") if path.is_file()}


def test_a_report_again_replaces_the_files(tmp_path):
    study = made.fill(made.new_study(), 8)
    first = write_reports(study, tmp_path, no_optim_plots=True)
    assert write_reports(study, tmp_path, no_optim_plots=True).paths == first.paths
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == sorted(first.paths)


def test_figures_can_be_left_out(tmp_path):
    files = write_reports(made.fill(made.new_study(), 20), tmp_path, no_optim_plots=True)
    assert files.figures == ()
    assert "<svg" not in files.page.read_text()
    assert "Trials" in files.page.read_text()


def test_the_table_may_lie_elsewhere(tmp_path):
    files = write_reports(made.fill(made.new_study(), 3), tmp_path / "a", no_optim_plots=True, tables=tmp_path / "b")
    assert files.table is not None and files.table.parent == tmp_path / "b"
    assert files.table.is_file()


def test_a_warm_start_is_shown_with_what_it_has_trained_with(tmp_path):
    """Its row has the nearest point of the space, which no part of the report may show; what the file leaves open is empty."""
    study = made.new_study()
    nearest = {"learning_rate": 1e-2, "one_minus_gamma": 0.01, "net_arch": "tiny"}
    warm = made.complete(nearest, 900.0, warm_start=True, trained={"learning_rate": 0.5, "one_minus_gamma": 0.01})
    study.add_trials([warm, *[made.complete(made.drawn(random.Random(seed))) for seed in range(5)]])
    files = write_reports(study, tmp_path)
    with files.table.open() as table:
        first, second, *_ = csv.DictReader(table)
    assert (first["params_learning_rate"], first["params_net_arch"], first["params_one_minus_gamma"]) == ("0.5", "", "0.01")
    assert float(second["params_learning_rate"]) == study.trials[1].params["learning_rate"]
    page = files.page.read_text(encoding="utf-8")
    best = page[page.index("<h2>Best trial") : page.index("<h2>", page.index("<h2>Best trial") + 1)]
    assert "<td>0.5</td>" in best and "tiny" not in best and "net_arch" not in best
    assert files.problems == ()


def test_png_files_come_with_matplotlib(tmp_path):
    files = write_reports(made.fill(made.new_study(), 20), tmp_path)
    assert [path.name for path in files.figures] == ["history.png", "learning_curves.png", "importances.png", "slices.png"]
    assert all(path.parent == tmp_path / "figures" for path in files.figures)


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [made.failed({})],
        [made.complete(PARAMS)],
        [made.complete(PARAMS, float("inf")), made.pruned(PARAMS)],
        [made.row(made.TrialState.RUNNING, PARAMS), made.row(made.TrialState.WAITING, {})],
    ],
    ids=["none", "failed", "one", "infinite", "open"],
)
@pytest.mark.parametrize(
    "attributes", [made.ATTRIBUTES, {}, {key: [1] for key in made.ATTRIBUTES}], ids=["ours", "none", "odd"]
)
def test_any_study_gives_a_page_and_a_table(rows, attributes, tmp_path):
    study = made.new_study(name="a/b: c", attributes=attributes)
    study.add_trials(rows)
    files = write_reports(study, tmp_path)
    assert files.problems == ()
    assert files.page.is_file()
    assert files.table.parent == tmp_path
    assert (files.best is not None) == ([trial.value for trial in rows] == [made.value_of_params(PARAMS)])


def test_what_cannot_be_written_costs_no_other_file(tmp_path, caplog):
    (tmp_path / "report.html").mkdir()
    files = write_reports(made.fill(made.new_study(), 8), tmp_path, no_optim_plots=True)
    assert files.page is None
    assert files.best.is_file()
    assert files.table.is_file()
    assert [problem.partition(":")[0] for problem in files.problems] == ["cannot write the page"]
    assert "cannot write the page" in caplog.text
    (tmp_path / "file").touch()
    nothing = write_reports(made.new_study(), tmp_path / "file")
    assert nothing.paths == []
    assert nothing.problems[0].startswith("cannot make its folder: ")


def test_the_table_is_named_after_the_study_when_the_env_is_unknown():
    name = table_name(record(made.new_study(name="../x y", attributes={})))
    assert re.fullmatch(r"report_\.\.-x-y_0-trials-unknown-unknown-unknown_\d+\.csv", name)
