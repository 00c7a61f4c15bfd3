"""Results as one HTML file, which needs nothing else: no network, no other files.

The page of one program has every case, passes included, to open by a click or a key. Several programs are a matrix of
requirements and programs, and below it the failures of each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files
from itertools import groupby

from multilang.conformance.cases import all_sections
from multilang.conformance.result import BLOCKED, FAILED, PASSED, SKIPPED, CaseResult, Result
from multilang.conformance.sources import parts

WARNING = "warning"
_SIGNS = {PASSED: "✓", FAILED: "✗", WARNING: "!", BLOCKED: "·", SKIPPED: "-"}
_MEANINGS = {
    PASSED: "kept",
    FAILED: "a MUST that is not kept",
    WARNING: "a SHOULD that is not kept",
    BLOCKED: "could not be judged: another failure ended the conversation",
    SKIPPED: "not asked of this program",
}
_CLASSES = {WARNING: "warn"}
_ARROWS = {"sent": "→", "received": "←"}
_NOTHING_FROM_OUTSIDE = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
_KEYS = "<span class=l><kbd>j</kbd> <kbd>k</kbd> up, down; <kbd>Enter</kbd> open; <kbd>n</kbd> next failure; <kbd>/</kbd> search; <kbd>e</kbd> open all</span>"


def to_page(results: Sequence[Result], title: str = "Multi-lang conformance") -> str:
    """Return the page.

    Args:
        results: The results of the programs.
        title: The page's title.
    """
    if len(results) == 1:
        [result] = results
        body = f"{_intro(result)}{_bar(result)}{''.join(_sections(result))}<script>{_asset('page.js')}</script>"
        return _page(f"{title}: {result.name}", "", body)
    failures = "".join(_failures(number, result) for number, result in enumerate(results))
    legend = " &nbsp; ".join(f"{_sign(word)} {_MEANINGS[word]}" for word in _SIGNS)
    return _page(
        title,
        "wide",
        f"<p>Requirements of Apache Storm's multi-lang protocol, each tried on each program.</p>{_summary(results)}"
        f'<h2>Requirement by requirement</h2><p>{legend}</p><div class="scroll">{_matrix(results)}</div>{failures}',
    )


def _page(title: str, kind: str, body: str) -> str:
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f'<meta http-equiv="Content-Security-Policy" content="{_NOTHING_FROM_OUTSIDE}">'
        f"<title>{escape(title)}</title><style>{_asset('page.css')}</style>"
        f'<body class="{kind}"><h1>{escape(title)}</h1>{body}</html>\n'
    )


_MOST_LINKS = 10  # of failures, at the top of a page


def _asset(name: str) -> str:
    return (files("multilang.conformance") / name).read_text("utf-8")


def _word(case: CaseResult) -> str:
    return WARNING if case.status == FAILED and not case.is_must else case.status


def _sign(word: str) -> str:
    return f'<span class="{_CLASSES.get(word, word)}">{_SIGNS[word]}</span>'


def _anchor(number: int, case: CaseResult) -> str:
    return f"f{number}-{case.path.replace('/', '-')}"


# ---- one program ----


def _intro(result: Result) -> str:
    contract = (
        f"keeps the conformance contract ({len(result.contract)} steps)"
        if result.contract is not None
        else "does not keep the conformance contract: only what can be seen from outside is tested"
    )
    rows = [("command", f"<code>{escape(' '.join(result.command))}</code>"), ("kind", escape(result.kind))]
    rows += [("contract", contract), ("time", f"{result.seconds:.1f} s")]
    failed = [case for case in result.cases if _word(case) == FAILED]
    links = [f'<a href="#{_anchor(0, case)}">{case.path}, {escape(case.title)}</a>' for case in failed[:_MOST_LINKS]]
    if len(failed) > len(links):
        links.append(f"and {len(failed) - len(links)} more")
    rows += [("failed", "<br>".join(links))] if links else []
    rows += [
        ("not judged", f"{count} {escape(f'{status}: {why}')}") for (status, why), count in result.left_out().items()
    ]
    rows += [("note", escape(note)) for note in result.notes]
    return f"<dl>{''.join(f'<dt>{name}<dd>{value}' for name, value in rows)}</dl>"


def _bar(result: Result) -> str:
    words = [_word(case) for case in result.cases]
    buttons = [f'<button data-show="all" aria-pressed="true">all {len(words)}</button>']
    buttons += [
        f'<button data-show="{word}" aria-pressed="false" title="{_MEANINGS[word]}">{_sign(word)} {word} {words.count(word)}</button>'
        for word in _SIGNS
        if word in words
    ]
    search = '<input id="search" type="search" placeholder="search in requirements and messages" aria-label="search">'
    return f'<div class="bar">{"".join(buttons)}{search}{_KEYS}</div>'


def _sections(result: Result) -> Iterator[str]:
    for path, cases in groupby(result.cases, key=lambda case: case.path.rpartition("/")[0]):
        group = list(cases)
        yield f"<section><h2>{escape(group[0].section)} <span class=l>{path}</span></h2>"
        yield from (_case(0, case) for case in group)
        yield "</section>"


def _case(number: int, case: CaseResult) -> str:
    word = _word(case)
    is_open = " open" if word in (FAILED, WARNING) else ""
    took = f"{case.seconds * 1000:,.0f} ms, " if case.transcript else ""
    sizes = f"{took}{case.bytes_sent:,} → {case.bytes_received:,} ←" if case.transcript else ""
    return (
        f'<details class="case" id="{_anchor(number, case)}" data-word="{word}"{is_open}><summary>{_sign(word)}'
        f'<code>{case.path}</code><span class="t">{escape(case.title)}</span><span class="l level">{case.level}</span>'
        f'<span class="l sizes">{sizes}</span></summary>{_body(case)}</details>'
    )


def _body(case: CaseResult) -> str:
    pair = ""
    if case.expected is not None or case.received is not None:
        pair = (
            f"<dl><dt>expected<dd><code>{escape(case.expected or '')}</code>"
            f"<dt>received<dd><code>{escape(case.received or '')}</code></dl>"
        )
    why = f"<p>{escape(case.status)}: {escape(case.why)}</p>" if case.why else ""
    return f"<p>{escape(case.requirement)} {_source(case)}</p>{why}{pair}{_conversation(case)}"


def _source(case: CaseResult) -> str:
    texts = (
        f'<a href="{escape(link)}" rel="noreferrer">{escape(text)}</a>' if link else escape(text)
        for text, link in parts(case.path, case.source)
    )
    return f"<span class=l>{'; '.join(texts)}</span>"


def _conversation(case: CaseResult) -> str:
    if not case.transcript:
        return ""
    rows = "".join(
        f'<tr class="{escape(each.direction)}"><td>{each.seconds:.3f} s<td>{each.size:,}'
        f"<td>{_ARROWS.get(each.direction, each.direction)}<td><div>{escape(each.text.removesuffix(chr(10)))}</div>"
        for each in case.transcript
    )
    return f"<table class=conversation aria-label='the conversation: time, bytes, → sent, ← received, message'>{rows}</table>"


# ---- several programs ----


def _head(result: Result) -> str:
    return f"{escape(result.name)}<br><span class=l>{escape(result.kind)}</span>"


def _summary(results: Sequence[Result]) -> str:
    rows = "".join(
        f"<tr><td>{escape(each.name)}<td>{escape(each.kind)}<td>{'yes' if each.contract else 'no'}"
        + "".join(f"<td class=r>{each.count(PASSED, level)} of {each.asked(level)}" for level in ("MUST", "SHOULD"))
        + f"<td class=r>{each.seconds:.1f} s"
        for each in results
    )
    return (
        '<div class="scroll"><table class=all><thead><tr><th>program<th>kind<th>keeps the contract<th class=r>MUST kept<th class=r>SHOULD kept<th class=r>time'
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
    return f'<table class="m all"><thead><tr><th>requirement{heads}<tbody>{"".join(rows)}</table>'


def _cell(number: int, case: CaseResult | None) -> str:
    if case is None:
        return "<td class=r>"
    sign = _sign(_word(case))
    if case.status == FAILED:
        sign = f'<a href="#{_anchor(number, case)}">{sign}</a>'
    return f'<td class=r title="{escape(case.status)}{": " if case.why else ""}{escape(case.why[:300])}">{sign}'


def _failures(number: int, result: Result) -> str:
    failed = [case for case in result.cases if case.status == FAILED]
    if not failed:
        return ""
    head = f"<h2>{escape(result.name)}, {escape(result.kind)}: what it does not keep</h2>"
    return head + "".join(_case(number, case) for case in failed)
