"""Toolset files: how they are written, read, checked and compared.

The pydantic models are the check of a file's structure; the published JSON Schema
(`toolset.schema.json`) says the same to editors. What values mean together is `check`'s.
"""

from toolgen.tools.files.form import from_dict, is_edited, to_dict
from toolgen.tools.files.store import guard_edits, load_toolset, render, save_toolset, would_change

__all__ = [
    "from_dict",
    "guard_edits",
    "is_edited",
    "load_toolset",
    "render",
    "save_toolset",
    "to_dict",
    "would_change",
]
