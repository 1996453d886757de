"""Snapshots of screens as SVG: pictures that a person can look at, compared as text."""

import re

from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

_LINE_CLIPS = re.compile(
    r' clip-path="url\(#terminal-line-\d+\)"'
    r'|<clipPath id="terminal-line-\d+">.*?</clipPath>\s*',
    re.DOTALL,
)
_FONTS = re.compile(r"@font-face\s*\{.*?\}\s*", re.DOTALL)


class SvgSnapshot(SingleFileSnapshotExtension):
    """One SVG file a snapshot."""

    file_extension = "svg"
    _write_mode = WriteMode.TEXT


def normalised(svg: str) -> str:
    """The SVG without what differs from run to run, and without what makes it large.

    No font from elsewhere is asked for, and lines are not clipped: each is as wide as it says.
    """
    svg = re.sub(r"terminal-\d+-", "terminal-", svg)
    return _LINE_CLIPS.sub("", _FONTS.sub("", svg))
