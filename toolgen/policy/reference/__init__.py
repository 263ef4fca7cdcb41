"""Importing approval configs of the reference system: `import_config` converts one and says what changed."""

from toolgen.policy.reference.convert import Imported, import_config

__all__ = ["Imported", "import_config"]
