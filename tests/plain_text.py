"""What readers of text do before they cut it into lines, in one line each."""

from __future__ import annotations

import re

CONTROL = re.compile(rb"[\x00-\x1f\x7f]")  # in no label


def plain_text(content: bytes) -> bytes:
    """A text with newlines, without byte order marks at the starts of lines, and without the end mark of DOS."""
    if b"\n" not in content:
        content = content.replace(b"\r", b"\n")
    return re.sub(b"^(?:\xef\xbb\xbf)+", b"", content, flags=re.MULTILINE).rstrip(b"\x1a")


def is_utf16(content: bytes) -> bool:
    """Whether a file is refused as UTF-16."""
    return bool(re.match(rb"\xff\xfe|\xfe\xff|([^\0]\0){2}|(\0[^\0]){2}", content, re.DOTALL))
