"""The page of an advice: what to change, who fails, and what to paste."""

from typing import Any

import numpy as np

from fedcohort.advice.advisor import Advice
from fedcohort.advice.broken import broken_clients, describe_broken
from fedcohort.advice.deadline import DeadlineAdvice
from fedcohort.advice.gains import p_value_between
from fedcohort.advice.headline import caveats, headline
from fedcohort.advice.selectors import UNIFORM, SelectorAdvice
from fedcohort.advice.text import sentences
from fedcohort.advice.wording import TOPICS, count_reasons
from fedcohort.reports.answer import BEST, TIED, Answer, LeftOut, MarkedTable
from fedcohort.reports.charts import Axis, Bar, Chart, Line, Panel
from fedcohort.reports.findings import Findings
from fedcohort.reports.palette import NEUTRAL, Style, scheme_style
from fedcohort.reports.words import counted, mean_with_sd, signed
from fedcohort.statistics import holm, sd

LEVEL = 0.05
MAX_CLIENTS = 12  # in the table of who fails
MAX_POINTS = 12  # in the table of deadlines


def advice_findings(advice: Advice) -> Findings:
    """Return what the page of an advice shows.

    Args:
        advice: The advice.
    """
    log = advice.log
    said: dict[str, list[str]] = {}
    for sentence in sentences(advice):
        text = sentence.text.replace("`", "")
        said.setdefault(TOPICS[sentence.topic], []).append(text)
    tables = {"All clients": _client_rows(advice)}
    if advice.deadline is not None:
        tables = {"Deadlines": _deadline_rows(advice.deadline)} | tables
    return Findings(
        title=f"Advice for a federation of {counted(log.num_clients, 'client')}: {log.source}",
        kinds={},
        answer=_answer(advice),
        tables=tables,
        lead=[said[TOPICS["seen"]][0], *log.notes],
        said=said,
        settings=advice.settings,
    )


def _answer(advice: Advice) -> Answer:
    picture = _selector_picture(advice.selector)
    if advice.deadline is not None:
        picture = _deadline_picture(advice.deadline, advice.used.longest_deadline)
    return Answer(
        sentence=headline(advice),
        basis=caveats(advice),
        picture=picture,
        table=_selector_table(advice.selector),
        left_out=_who_fails(advice),
        to_paste={
            "settings.toml, for fedcohort compare --config": advice.settings_toml,
            "strategy.py, for a Flower server app": advice.snippet,
        },
    )


def _deadline_picture(found: DeadlineAdvice, longest: float | None) -> Chart:
    """Return answers per minute over the deadline, with the recommended and the present one.

    Args:
        found: What other deadlines get.
        longest: The longest deadline of the log, after which nothing was seen; None if none is.
    """
    speed = 60 * found.speed
    is_seen = found.seconds <= (np.inf if longest is None else longest)
    last_seen = max(0, int(is_seen.sum()) - 1)
    seen = slice(0, last_seen + 1)
    lines = [Line("answers per minute", Style(0), found.seconds[seen], speed[seen])]
    caption = "Answers per minute with other deadlines, from the recorded rounds played again."
    if not is_seen.all():
        unseen = slice(last_seen, None)
        dashes = Style(0, dash=1)
        lines.append(Line("estimated", dashes, found.seconds[unseen], speed[unseen]))
        caption += (
            f" Beyond {longest:.3g} s, the longest deadline of the log, no answer was recorded: "
            "the dashed line rests on times of a fitted model."
        )
    limit = found.shortest_allowed
    if limit > found.seconds[0]:
        ends = np.array([0.0, float(speed.max())])
        lines.append(
            Line(f"{100 * found.keep:.0f} % kept", Style(NEUTRAL), np.full(2, limit), ends)
        )
    word = "to try" if found.is_worth_a_try else "best guess"
    if found.is_to_set:
        word = "recommended"
    marked = {word: found.best}
    if found.present is not None and found.present != found.best:
        marked["present"] = found.present
    for name, seconds in marked.items():
        place = found.nearest(seconds)
        at = slice(place, place + 1)
        lines.append(Line(f"{name}: {seconds:.3g} s", Style(1), found.seconds[at], speed[at]))
    return Chart(
        id="deadlines",
        title="What a deadline gets",
        caption=(
            f"{caption} Left of the line fewer than {100 * found.keep:.0f} % of the answers are "
            "kept."
        ),
        x=Axis("deadline in seconds", column="deadline"),
        y=Axis("answers per minute", from_zero=True),
        panels={"all": Panel(lines, _deadline_summary(found))},
        panels_by="all",
        highlighted=tuple(line.name for line in lines),
    )


def _deadline_summary(found: DeadlineAdvice) -> str:
    best = found.nearest(found.best)
    return (
        f"At {found.best:.3g} s: {60 * found.speed[best]:.3g} answers per minute, "
        f"{found.kept[best]:.0%} of all answers kept."
    )


def _selector_picture(found: SelectorAdvice) -> Chart:
    bars = []
    for name, played in found.fitted.items():
        height = float(played.arrivals.mean())
        bars.append(Bar(name, scheme_style(name), height, sd(played.arrivals)))
    bars.sort(key=lambda bar: -bar.height)
    words = ", ".join(f"{bar.name} {bar.height:.3g}" for bar in bars)
    return Chart(
        id="selectors",
        title="Answers per round",
        caption="In a world fitted to the log. Mean ± standard deviation over its runs.",
        x=Axis("selector"),
        y=Axis("answers per round"),
        panels={"all": Panel(bars, f"Answers per round: {words}.")},
        panels_by="all",
        highlighted=tuple(dict.fromkeys((found.best, UNIFORM))),
    )


def _selector_table(found: SelectorAdvice) -> MarkedTable:
    """Return the selectors, the most answers first; the recommended one is marked."""
    names = sorted(found.fitted, key=lambda name: -float(found.fitted[name].arrivals.mean()))
    base = found.fitted[UNIFORM].arrivals
    tied = _tied(found)
    rows = []
    marks = {}
    for place, name in enumerate(names):
        played = found.fitted[name]
        rows.append(
            {
                "selector": name,
                "remark": found.remark(name),
                "fitted world": mean_with_sd(played.arrivals, digits=2),
                "resampled log": mean_with_sd(found.resampled[name].arrivals, digits=2),
                "against uniform": signed(float((played.arrivals - base).mean()), digits=2),
                f"least asked fifth (≥\u00a0{found.fair:g})": f"{played.least_asked:.2f}",
                "Jain's index": f"{float(played.jain.mean()):.3f}",
            }
        )
        if name == found.best:
            marks[place] = BEST
        elif name in tied:
            marks[place] = TIED
    note = (
        "Answers per round, ± one standard deviation over runs. ★ is recommended: the most answers "
        f"among those that ask every fifth of the clients at least {found.fair:g} of a fair share. "
        "≈ cannot be told from it as far as the clients' rates are known: paired differences over "
        f"{counted(len(base) // 2, 'draw')} of the rates, two-sided Student's t at 5 %, corrected "
        "by Holm's method."
    )
    return MarkedTable("Selectors", rows, marks, note)


def _tied(found: SelectorAdvice) -> set[str]:
    """Return the selectors that cannot be told from the recommended one in the fitted world."""
    others = [name for name in found.fitted if name != found.best]
    p_values = [p_value_between(found.fitted, name, found.best) for name in others]
    corrected = holm(np.array(p_values))
    return {name for name, p_value in zip(others, corrected, strict=True) if p_value >= LEVEL}


def _who_fails(advice: Advice) -> LeftOut:
    used = advice.used
    rates = advice.rates
    broken = broken_clients(used)
    said = describe_broken(used)
    names = {used.clients[place] for place in broken}
    rows = [row for row in _client_rows(advice) if row["client"] not in names]
    if rows:
        low = used.clients.index(rows[0]["client"])
        others = " of the others" if broken else ""
        said.append(
            f"Client {used.clients[low]} answers least{others}, {rates.mean[low]:.0%} of the time "
            f"(95 % interval {rates.low[low]:.0%} to {rates.high[low]:.0%})."
        )
    reasons = count_reasons(advice.waste.reasons)
    if reasons:
        said.append(f"Why updates are missing: {'; '.join(reasons)}.")
    note = "How often a client answers is shrunk towards the others where it was seldom asked."
    if len(rows) > MAX_CLIENTS:
        note += f" {MAX_CLIENTS} of {used.num_clients:,} clients; more are in the tables below."
    table = MarkedTable("Clients that answer least", rows[:MAX_CLIENTS], note=note)
    return LeftOut("Who fails", said, table=table)


def _client_rows(advice: Advice) -> list[dict[str, Any]]:
    """Return one row per client, the one that answers least first."""
    rates = advice.rates
    rows = []
    for place in np.argsort(rates.mean, kind="stable"):
        rows.append(
            {
                "client": advice.used.clients[place],
                "asked": f"{advice.used.asked_of_client[place]:,.0f}",
                "answers": f"{rates.mean[place]:.0%}",
                "95 % interval": f"{rates.low[place]:.0%} to {rates.high[place]:.0%}",
            }
        )
    return rows


def _deadline_rows(found: DeadlineAdvice) -> list[dict[str, Any]]:
    """Return some points of the curve of deadlines."""
    places = np.unique(np.linspace(0, len(found.seconds) - 1, MAX_POINTS).astype(int))
    rows = []
    for place in places:
        rows.append(
            {
                "deadline s": float(found.seconds[place]),
                "answers per round": float(found.arrivals[place]),
                "round s": float(found.length[place]),
                "answers kept": f"{found.kept[place]:.0%}",
                "answers per minute": 60 * float(found.speed[place]),
            }
        )
    return rows
