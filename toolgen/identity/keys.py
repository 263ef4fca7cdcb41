"""The root key, and the keys that are made of it: one for each purpose (HKDF-SHA256, RFC 5869).

The root key is 32 random bytes or more, as hexadecimal digits or base64, in `TOOLGEN_KEY` or in a file that
only its owner can read. Several, separated by white space or commas, are the key in use and previous ones,
which are for reading what was written with them.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
import secrets
import stat
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any, Final, Literal

from toolgen.errors import CredentialsError

Purpose = Literal["fingerprint", "audit", "encryption", "webhook"]
VARIABLE: Final = "TOOLGEN_KEY"
SHORTEST: Final = 32  # bytes
_LARGEST_FILE: Final = 65_536  # bytes
_DISTINCT: Final = 16  # different bytes; 32 random ones have about 30
_PURPOSES: Final = ("fingerprint", "audit", "encryption", "webhook")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2})+")
_BASE64 = re.compile(r"[A-Za-z0-9_-]+={0,2}")


class Keys:
    """A root key and its previous ones. It shows no key and cannot be pickled.

    Raises CredentialsError for a key that is too short or has too little in it.
    """

    __slots__ = ("_previous", "_root", "_subkeys", "id")

    def __init__(self, root: bytes, previous: Sequence[bytes] = ()) -> None:
        for number, key in enumerate((root, *previous)):
            fault = _fault(key)
            if fault:
                raise CredentialsError(f"{'a previous key' if number else 'the root key'} {fault}")
        self._root = root
        self._subkeys: dict[str, bytes] = {}
        self.id = _derived(root, "id", 4).hex()  # of the key in use, stored with what is written with it
        self._previous = {keys.id: keys for keys in map(Keys, previous) if keys.id != self.id}

    @classmethod
    def load(
        cls,
        value: str | None = None,
        *,
        file: str | PathLike[str] | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> Keys:
        """The keys of a text, else of a file, else of the environment variable TOOLGEN_KEY.

        Raises CredentialsError: there is none, it is no key, or others can read the file.
        """
        if value is not None:
            return cls._of(value, "the key")
        if file is not None:
            return cls._of(_read(Path(file)), f"the key file {os.fspath(file)}")
        if environ.get(VARIABLE, "").strip():
            return cls._of(environ[VARIABLE], VARIABLE)
        raise CredentialsError(f"there is no key: set {VARIABLE}, or name a key file")

    @classmethod
    def _of(cls, text: str, source: str) -> Keys:
        found = [_decoded(word) for word in re.split(r"[\s,]+", text) if word]
        keys = [key for key in found if key is not None]
        if not keys or len(keys) < len(found):
            what = "holds no key" if not found else "is no key" if len(found) == 1 else "holds what is no key"
            raise CredentialsError(f"{source} {what}: a key is {SHORTEST} random bytes as hexadecimal digits or base64")
        try:
            return cls(keys[0], keys[1:])
        except CredentialsError as error:
            raise CredentialsError(f"{source}: {error.message}") from None

    def subkey(self, purpose: Purpose) -> bytes:
        """The 32 bytes for one purpose; they tell nothing of the root key or of those for other purposes."""
        if purpose not in _PURPOSES:
            raise ValueError(f"there is no key for {purpose!r}; there are {', '.join(_PURPOSES)}")
        if purpose not in self._subkeys:
            self._subkeys[purpose] = _derived(self._root, purpose, 32)
        return self._subkeys[purpose]

    def by_id(self, id: str) -> Keys:
        """The keys whose id was stored with something: these or previous ones. Raises CredentialsError for neither."""
        if id == self.id:
            return self
        found = self._previous.get(id)
        if found is None:
            raise CredentialsError(f"this was written with the key {id!r}, which is neither the key nor a previous one")
        return found

    @property
    def all(self) -> tuple[Keys, ...]:
        """These keys, then the previous ones: what is compared with a digest of before is made with each."""
        return self, *self._previous.values()

    def __repr__(self) -> str:
        return f"<Keys {self.id}" + "".join(f", previous {id}" for id in self._previous) + ">"

    def __reduce__(self) -> Any:
        raise TypeError("keys are not pickled: they belong to the process that was given them")


def create_key_file(path: str | PathLike[str]) -> Keys:
    """Write a new random key to a file that only its owner can read, and return it.

    The file is there whole or not at all, and one that is there is never overwritten.

    Raises CredentialsError: there is a file of that name, or it cannot be written.
    """
    target = Path(path)
    text = secrets.token_hex(SHORTEST)
    draft: str | None = None
    try:
        descriptor, draft = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)  # 0600
        with open(descriptor, "w", encoding="ascii") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.link(draft, target)  # unlike a rename it fails where there is a file
    except FileExistsError:
        raise CredentialsError(f"{target} exists; a key file is never overwritten") from None
    except OSError as error:
        raise CredentialsError(f"the key file {target} cannot be written: {error.strerror}") from None
    finally:
        if draft is not None:
            with suppress(OSError):
                os.unlink(draft)
    return Keys.load(text)


def _read(path: Path) -> str:
    # Without waiting: opening a pipe nobody writes to would block for ever.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        with open(os.open(path, flags), "rb") as file:
            status = os.fstat(file.fileno())
            content = file.read(_LARGEST_FILE) if stat.S_ISREG(status.st_mode) else b""
    except OSError as error:
        raise CredentialsError(f"the key file {path} cannot be read: {error.strerror}") from None
    if os.name == "posix" and status.st_mode & 0o077:
        raise CredentialsError(f"the key file {path} can be read or written by others; `chmod 600` it")
    return content.decode("ascii", "replace")


def _decoded(text: str) -> bytes | None:
    if _HEX.fullmatch(text):
        return bytes.fromhex(text)
    url_safe = text.translate(str.maketrans("+/", "-_"))
    if not _BASE64.fullmatch(url_safe):
        return None
    bare = url_safe.rstrip("=")
    try:
        key = base64.urlsafe_b64decode(bare + "=" * (-len(bare) % 4))
    except binascii.Error:
        return None
    return key if base64.urlsafe_b64encode(key).decode().rstrip("=") == bare else None  # else it was cut


def _fault(key: bytes) -> str:
    if len(key) < SHORTEST:
        return f"is shorter than {SHORTEST} bytes"
    return "is not random: it repeats a few bytes" if len(set(key)) < _DISTINCT else ""


def _derived(root: bytes, purpose: str, length: int) -> bytes:
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(algorithm=SHA256(), length=length, salt=None, info=f"toolgen 1 {purpose}".encode()).derive(root)
