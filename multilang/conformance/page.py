"""Results as one HTML page: a matrix of requirements and implementations, and below it each failure with its bytes."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from multilang.conformance.cases import all_sections
from multilang.conformance.result import BLOCKED, FAILED, PASSED, SKIPPED, CaseResult, Result

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --ok: #1a7f37; --bad: #cf222e; --warn: #9a6700; --mute: #767676; }
@media (prefers-color-scheme: dark) { :root { --ok: #3fb950; --bad: #ff7b72; --warn: #d29922; } }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 100rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.5rem; } h3 { font-size: 1rem; margin: 1.5rem 0 .3rem; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; }
th, td { padding: .18rem .5rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
thead th { position: sticky; top: 0; background: Canvas; vertical-align: bottom; }
th.r, td.r { text-align: center; } table.m .r { padding: .18rem .2rem; } table.m th.r { font-size: .8rem; }
table.m td:first-child { min-width: 15rem; position: sticky; left: 0; background: Canvas; }
tr.s th { padding-top: 1.1rem; } td.p { font: 13px ui-monospace, monospace; white-space: nowrap; }
.l { font-size: .75rem; color: var(--mute); } .passed { color: var(--ok); } .failed { color: var(--bad); font-weight: 600; }
.warn { color: var(--warn); font-weight: 600; } .blocked, .skipped { color: var(--mute); } td a { color: inherit; }
pre { font: 13px/1.4 ui-monospace, monospace; overflow-x: auto; white-space: pre-wrap; overflow-wrap: anywhere;
  border-left: 3px solid var(--line); padding: .3rem .7rem; margin: .4rem 0; } dt { font-weight: 600; } dd { margin: 0 0 .3rem; }
dl.pair { display: grid; grid-template-columns: max-content 1fr; gap: 0 .8rem; } summary { cursor: pointer; }
"""
_SIGNS = {PASSED: "✓", FAILED: "✗", BLOCKED: "·", SKIPPED: "–"}
_LEGEND = (
    '<p><span class="passed">✓</span> kept &nbsp; <span class="failed">✗</span> a MUST that is not kept &nbsp; '
    '<span class="warn">!</span> a SHOULD that is not kept &nbsp; <span class="blocked">·</span> could not be judged: '
    'another failure ended the conversation &nbsp; <span class="skipped">–</span> not asked of this program</p>'
)


def to_page(results: Sequence[Result], title: str = "Multi-lang conformance") -> str:
    """Return the page, which needs no other files."""
    failures = "".join(_failures(number, result) for number, result in enumerate(results))
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style><h1>{escape(title)}</h1>"
        f"<p>Requirements of Apache Storm's multi-lang protocol, each tried on each program.</p>{_summary(results)}"
        f'<h2>Requirement by requirement</h2>{_LEGEND}<div class="scroll">{_matrix(results)}</div>{failures}</html>\n'
    )


def _head(result: Result) -> str:
    return f"{escape(result.name)}<br><span class=l>{result.kind}</span>"


def _summary(results: Sequence[Result]) -> str:
    rows = "".join(
        f"<tr><td>{escape(each.name)}<td>{each.kind}<td>{'yes' if each.contract else 'no'}"
        + "".join(
            f"<td class=r>{each.count(PASSED, level)} of {each.count(PASSED, level) + each.count(FAILED, level) + each.count(BLOCKED, level)}"
            for level in ("MUST", "SHOULD")
        )
        + f"<td class=r>{each.seconds:.1f} s"
        for each in results
    )
    return (
        '<div class="scroll"><table><thead><tr><th>program<th>kind<th>keeps the contract<th class=r>MUST kept<th class=r>SHOULD kept<th class=r>time'
        f"<tbody>{rows}</table></div>"
    )


def _matrix(results: Sequence[Result]) -> str:
    found = [{case.path: case for case in result.cases} for result in results]
    heads = "".join(f"<th class=r>{_head(result)}" for result in results)
    rows = []
    for section in all_sections():
        cases = [case for case in section.cases if any(case.path in each for each in found)]
        if cases:
            rows.append(
                f'<tr class="s"><th colspan="{len(results) + 1}">{escape(section.name)} <span class=l>{section.path}</span>'
            )
        for case in cases:
            cells = "".join(_cell(number, each.get(case.path)) for number, each in enumerate(found))
            number = case.path.rpartition("/")[2]
            rows.append(
                f'<tr><td title="{escape(case.requirement)}">{number}. {escape(case.title)} <span class=l>{case.level}</span>{cells}'
            )
    return f"<table class=m><thead><tr><th>requirement{heads}<tbody>{''.join(rows)}</table>"


def _cell(number: int, case: CaseResult | None) -> str:
    if case is None:
        return "<td class=r>"
    kind = "warn" if case.status == FAILED and not case.is_must else case.status
    sign = "!" if kind == "warn" else _SIGNS[case.status]
    if case.status == FAILED:
        sign = f'<a href="#{_anchor(number, case)}">{sign}</a>'
    return (
        f'<td class="r {kind}" title="{escape(case.status)}{": " if case.why else ""}{escape(case.why[:300])}">{sign}'
    )


def _anchor(number: int, case: CaseResult) -> str:
    return f"f{number}-{case.path.replace('/', '-')}"


def _failures(number: int, result: Result) -> str:
    failed = [case for case in result.cases if case.status == FAILED]
    if not failed:
        return ""
    return f"<h2>{escape(result.name)}, {result.kind}: what it does not keep</h2>" + "".join(
        _failure(number, case) for case in failed
    )


def _failure(number: int, case: CaseResult) -> str:
    pair = ""
    if case.expected is not None or case.received is not None:
        pair = (
            f"<dl class=pair><dt>expected<dd><code>{escape(case.expected or '')}</code>"
            f"<dt>received<dd><code>{escape(case.received or '')}</code></dl>"
        )
    talk = escape(
        "\n".join(
            f"{'→' if way == 'sent' else '←' if way == 'received' else way} {text}" for way, text in case.transcript
        )
    )
    whole = (
        f"<details><summary>the conversation (→ sent, ← received)</summary><pre>{talk}</pre></details>" if talk else ""
    )
    return (
        f'<h3 id="{_anchor(number, case)}"><span class="{"failed" if case.is_must else "warn"}">{case.level}</span> '
        f"{case.path}: {escape(case.title)}</h3><p>{escape(case.requirement)} <span class=l>{escape(case.source)}</span></p>"
        f"<p>{escape(case.why)}</p>{pair}{whole}"
    )
