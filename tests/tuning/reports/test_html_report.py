"""The page: one file that loads nothing and runs nothing, readable whatever stands in the study."""

import re
from html.parser import HTMLParser

import made_studies as made
import pytest
from optuna.distributions import CategoricalDistribution
from optuna.trial import TrialState, create_trial

from lit_sb3_ray.tuning.reports.figures import build_figures
from lit_sb3_ray.tuning.reports.html_report import page
from lit_sb3_ray.tuning.reports.record import record

PARAMS = {"learning_rate": 1e-3}
NASTY = "<script>alert('x')</script>\"&\x00\ud800"


class Reader(HTMLParser):
    """Collects tags, attributes and text, and checks that what is opened is closed."""

    VOID = frozenset({"meta"})

    def __init__(self, text):
        super().__init__()
        self.tags, self.links, self.open, self.words = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [
            value for name, value in attrs if name in ("src", "href", "xlink:href", "data", "action") or name.startswith("on")
        ]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return " ".join(self.words)


def page_of(*rows, best="", **settings):
    study = made.new_study(**settings)
    study.add_trials(rows)
    seen = record(study)
    return page(seen, build_figures(seen), best)


def headings(text):
    return re.findall(r"<h2>(.*?)</h2>", text)


def test_a_page_of_all_kinds_of_trials_refers_to_nothing_and_runs_nothing():
    study = made.fill(made.new_study(), 40)
    text = page(record(study), build_figures(record(study)), "CartPole-v1:\n  n_steps: 32\n")
    read = Reader(text)
    assert read.open == []
    assert read.links == []
    assert not {"script", "link", "img", "iframe", "object", "embed"} & set(read.tags)
    assert "url(" not in text
    assert "@import" not in text
    assert "http://" not in text
    assert "https://" not in text
    assert "default-src &#x27;none&#x27;" in text or "default-src 'none'" in text
    assert headings(text) == [
        "Best trial",
        "Optimisation history",
        "Learning curves",
        "Parameter importances",
        "Slices",
        "Failures (5)",
        "Evaluations that were stepped over",
        "Trials",
    ]
    assert read.tags.count("svg") == 3 + len(made.SPACE)
    assert "ValueError: the joint is broken" in read.text
    assert "  n_steps: 32" in read.text
    assert "40 (18 complete, 17 pruned, 5 fail)" in read.text


def test_names_values_and_errors_cannot_bring_markup_in():
    distribution = CategoricalDistribution([NASTY, "b"])
    rows = [
        create_trial(
            params={NASTY: NASTY}, distributions={NASTY: distribution}, value=float(number), intermediate_values={1: 1.0}
        )
        for number in range(6)
    ]
    rows.append(made.failed(PARAMS, NASTY))
    attributes = {key: NASTY for key in (*made.ATTRIBUTES, "else")}
    text = page_of(*rows, best=f"# {NASTY}", name=NASTY.replace("\x00", "").replace("\ud800", ""), attributes=attributes)
    read = Reader(text)
    assert read.open == []
    assert "script" not in read.tags
    assert "<script>alert('x')</script>" in read.text
    text.encode("utf-8")


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [made.failed({})],
        [made.complete(PARAMS)],
        [made.complete(PARAMS, float("inf"))],
        [made.row(TrialState.WAITING, {})],
    ],
    ids=["none", "failed", "one", "infinite", "waiting"],
)
def test_few_or_odd_trials_give_a_whole_page(rows):
    read = Reader(page_of(*rows))
    assert read.open == []
    assert "Trials" in read.text


def test_a_study_of_another_system_needs_no_attribute():
    read = Reader(page_of(made.row(TrialState.COMPLETE, PARAMS, 5.0), attributes={"num_timesteps": "x", "marks": 3}))
    assert "Trial 0:" in read.text


def test_long_values_are_cut():
    distribution = CategoricalDistribution(["x" * 100_000])
    row = create_trial(params={"p" * 5000: "x" * 100_000}, distributions={"p" * 5000: distribution}, value=1.0)
    text = page_of(row, made.failed(PARAMS, "e" * 100_000), attributes={"command": "c" * 100_000})
    assert len(text) < 20_000
    assert "…" in text


def test_the_page_of_a_thousand_trials_is_small_and_has_them_all():
    study = made.fill(made.new_study(), 1000)
    text = page(record(study), build_figures(record(study)), "")
    assert len(text.encode()) < 1_000_000
    assert Reader(text).tags.count("tr") > 1000


def test_no_study_makes_a_page_above_five_megabytes():
    """Many parameters, long values that are longer yet when escaped, many evaluations, a failure of its own each time."""
    names = [f"{'<' * 60}{number}" for number in range(40)]
    space = dict.fromkeys(names, CategoricalDistribution([letter * 60 for letter in "<>&"]))
    curve = {step: float(step) for step in range(200)}
    rows = []
    for number in range(1500):
        params = dict.fromkeys(names, "<>&"[number % 3] * 60)
        state = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.PRUNED, TrialState.FAIL)[min(number // 240, 3)]
        trouble = {"failure": f"{number}{'&' * 500}", "traceback": f"{'<' * 500}\n" * 100} if state == TrialState.FAIL else {}
        rows.append(
            create_trial(
                state=state,
                params=params,
                distributions=space,
                value=1.0 if state == TrialState.COMPLETE else None,
                intermediate_values=curve,
                user_attrs=trouble,
            )
        )
    text = page_of(*rows)
    assert 1_000_000 < len(text.encode()) < 5_000_000
    assert Reader(text).open == []


def test_of_very_many_rows_and_failures_some_are_shown():
    text = page_of(*[made.failed(PARAMS, f"ValueError: {number}") for number in range(1200)])
    read = Reader(text)
    assert "Failures (1,200)" in read.text
    assert "And 1,000 more, in the CSV." in read.text
    assert "the best 1,000 of 1,200 trials; the CSV has all." in read.text
    assert read.text.count("Traceback") == 10


def test_jumped_evaluations_are_counted():
    rows = [made.pruned(PARAMS, jumped=[2000, 4000]), made.pruned(PARAMS, jumped=[2000]), made.pruned(PARAMS, jumped="x")]
    table = page_of(*rows).partition("stepped over</h2>")[2].partition("</table>")[0]
    assert re.findall(r"<td>(.*?)</td>", table) == ["2,000", "2", "4,000", "1"]


@pytest.mark.parametrize(
    ("pruner", "rows", "explained"),
    [
        ("none", [made.complete(PARAMS, jumped=[2000])], False),
        ("nop", [made.complete(PARAMS, jumped=[2000])], False),
        ("pbt", [made.complete(PARAMS, jumped=[2000])], False),
        ("asha", [made.complete(PARAMS, jumped=[2000])], True),
        ("none", [made.complete(PARAMS, jumped=[2000]), made.pruned(PARAMS)], True),
    ],
)
def test_pruning_is_explained_where_there_is_any(pruner, rows, explained):
    """A study may have been begun with another pruner than it says."""
    text = page_of(*rows, attributes={**made.ATTRIBUTES, "pruner": pruner})
    assert "longer than the time between two evaluations" in text
    for words in ("A cross is where a trial was pruned", "let the pruner see"):
        assert (words in text) == explained
    assert ("The upright lines are the evaluations." in text) != explained


def test_a_broken_off_trial_is_told_as_such():
    assert "no error is recorded: it was broken off" in page_of(made.row(TrialState.FAIL, PARAMS))


def test_of_several_objectives_the_first_counts():
    import optuna

    study = optuna.create_study(directions=["minimize", "maximize"])
    study.add_trials([create_trial(values=[2.0, 1.0]), create_trial(values=[1.0, 9.0])])
    read = Reader(page(record(study), build_figures(record(study)), ""))
    assert "Of its 2 values the first counts here." in read.text
    assert "Trial 1:" in read.text
