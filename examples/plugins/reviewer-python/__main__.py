"""A reviewer in Python that finds trailing whitespace and lines that are left to do.

It checks only lines that the change adds. It ignores trailing whitespace where the
worktree's .editorconfig has trim_trailing_whitespace = false. Options: words, the marks of
unfinished lines, separated by commas (TODO,FIXME); severity of these findings (warning).
"""

import configparser
import fnmatch
import re

import grpc

import covenplugin

HUNK = re.compile(r"@@ -\S+ \+(\d+)")


def added(diff):
    """Yields the lines that a diff adds: file, number and text."""
    file, number, inside = "", 0, False
    for line in diff.split("\n"):
        hunk = HUNK.match(line)
        if line.startswith("diff --git "):
            inside = False
        elif not inside and line.startswith("+++ b/"):
            file = line[6:].rstrip("\t")
        elif hunk:
            number, inside = int(hunk.group(1)), True
        elif inside and line.startswith("+"):
            yield file, number, line[1:]
            number += 1
        elif inside and not line.startswith(("-", "\\")):
            number += 1


def untrimmed(coven):
    """Returns the patterns of files that may have trailing whitespace, from .editorconfig."""
    try:
        text = coven.read_file(".editorconfig").decode(errors="replace")
        settings = configparser.ConfigParser(interpolation=None, strict=False)
        settings.read_string("[.]\n" + text)
    except (grpc.RpcError, configparser.Error):
        return []  # missing or invalid
    return [p for p in settings.sections() if settings[p].get("trim_trailing_whitespace") == "false"]


class Reviewer:
    def review(self, change, coven):
        unknown = set(change.options) - {"words", "severity"}
        if unknown:
            raise ValueError("no option " + ", ".join(sorted(unknown)) + " (known: severity, words)")
        words = re.compile(r"\b(%s)\b" % "|".join(
            re.escape(w) for w in change.options.get("words", "TODO,FIXME").split(",")))
        diff = coven.diff() if change.truncated else change.diff
        free = untrimmed(coven)
        known, findings = {f.path for f in change.files}, []
        for file, number, text in added(diff):
            def found(severity, message, suggestion=""):
                where = {"file": file, "line": number} if file in known else {}
                findings.append(covenplugin.Finding(severity=severity, message=message, suggestion=suggestion, **where))
            trim = not any(fnmatch.fnmatch(file, p) or fnmatch.fnmatch(file, "*/" + p) for p in free)
            if trim and text.rstrip("\r") != text.rstrip():
                found("error", "blanks at the end of the line", "remove them")
            if words.search(text):
                found(change.options.get("severity", "warning"), "left to do: " + text.strip()[:200])
        findings.sort(key=lambda f: f.severity)  # errors first
        coven.log("%d files, %d findings" % (len(change.files), len(findings)))
        bad = any(f.severity == "error" for f in findings)
        return covenplugin.Review(verdict="fail" if bad else "pass", findings=findings[:1000])


covenplugin.serve(Reviewer())
