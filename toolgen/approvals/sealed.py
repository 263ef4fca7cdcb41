"""What is encrypted at rest: AES-256-GCM (NIST SP 800-38D), the id of the key stored with each text.

A sealed text is bound to its place: moved to another row or column it cannot be opened.
"""

from __future__ import annotations

import json
import os
from typing import Any, Final

from toolgen.errors import StoreError
from toolgen.identity.keys import Keys

_NONCE: Final = 12  # bytes
_ID: Final = 4  # bytes


class Seal:
    """Seals and opens with the keys of a store; previous keys open what they sealed."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys

    def seal(self, plain: bytes, *place: str) -> bytes:
        """The plain bytes sealed for a place, such as ("calls", pause id, call id, "arguments")."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        nonce = os.urandom(_NONCE)
        key = AESGCM(self._keys.subkey("encryption"))
        return bytes.fromhex(self._keys.id) + nonce + key.encrypt(nonce, plain, _bound(place))

    def json(self, data: Any, *place: str) -> bytes:
        """JSON data sealed."""
        return self.seal(
            json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"), *place
        )

    def open(self, sealed: bytes, *place: str) -> bytes:
        """The plain bytes. Raises StoreError where the key is not there or the text is not as it was sealed."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        if len(sealed) < _ID + _NONCE:
            raise StoreError(f"{place[0]}: what is stored is not what was sealed for this place")
        head, nonce, text = sealed[:_ID], sealed[_ID : _ID + _NONCE], sealed[_ID + _NONCE :]
        key = AESGCM(self._keys.by_id(head.hex()).subkey("encryption"))
        try:
            return key.decrypt(nonce, text, _bound(place))
        except (InvalidTag, ValueError):
            raise StoreError(f"{place[0]}: what is stored is not what was sealed for this place") from None

    def open_json(self, sealed: bytes, *place: str) -> Any:
        """JSON data opened."""
        return json.loads(self.open(sealed, *place).decode("utf-8", "surrogatepass"))


def _bound(place: tuple[str, ...]) -> bytes:
    return json.dumps(place).encode()
