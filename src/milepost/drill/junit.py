"""Writes a report as JUnit XML, one case per trial, so that a build server shows which point did not hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO
from xml.etree.ElementTree import Element, ElementTree, SubElement, indent

from milepost.drill.outcome import KINDS, Report, Verdict


def write_junit(report: Report, out: BinaryIO) -> None:
    """Write the report. Crash: perhaps half of it, which no reader takes for XML."""
    suite = Element("testsuite", name=_text(f"drill of {report.task}"), time=f"{report.seconds:.3f}")
    for kind, name, seconds, failure, untried in _cases(report):
        case = SubElement(suite, "testcase", classname=_text(f"drill.{report.task}.{kind}"), name=_text(name))
        case.set("time", f"{seconds:.3f}")
        if failure:
            SubElement(case, "failure", message=_text(failure.partition("\n")[0])).text = _text(failure)
        elif untried:
            SubElement(case, "skipped", message=_text(untried))
    for name, found in (("tests", "."), ("failures", "failure"), ("skipped", "skipped")):
        suite.set(name, str(len(suite.findall(f"testcase/{found}"))))
    root = Element("testsuites")
    root.append(suite)
    indent(root)
    ElementTree(root).write(out, encoding="utf-8", xml_declaration=True)


def _cases(report: Report) -> Iterator[tuple[str, str, float, str, str]]:
    for outcome in report.outcomes:
        replay = f"replay: {report.replay} {outcome.point}" if report.replay else ""
        told = [outcome.said or KINDS[outcome.kind], outcome.record, *outcome.differences, replay, outcome.output]
        failure = "\n".join(filter(None, told)) if outcome.failed else ""
        untried = (outcome.said or outcome.record) if outcome.verdict is Verdict.UNTRIED else ""
        yield outcome.kind, outcome.point, outcome.seconds, failure, untried
    for effect in report.side_effects:
        yield "undeclared", f"{effect.who} {effect.kind}", 0.0, f"{effect.what} at {effect.line}", ""
    for said in report.unsteady:
        yield "unsteady", said.partition(" ")[0], 0.0, said, ""


def _text(text: str) -> str:
    """Return text that XML can hold: control characters are shown as escapes."""
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)
