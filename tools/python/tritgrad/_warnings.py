"""Warnings that name the line of the caller."""

import sys
import warnings
from pathlib import Path

_PACKAGE = str(Path(__file__).parent)


def warn(sentence: str) -> None:
    """Warns (UserWarning) at the line outside the package that has called it, however deep the call
    is within. (skip_file_prefixes of warnings.warn does so from Python 3.12 on.)"""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(sentence, stacklevel=level)
