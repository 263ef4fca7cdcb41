from __future__ import annotations

import base64
import os
import pickle
import re
import stat
from pathlib import Path
from typing import Any

import pytest

from toolgen.errors import CredentialsError
from toolgen.identity.keys import Keys, create_key_file

ONE, TWO = bytes(range(32)), bytes(range(100, 140))
PURPOSES: list[Any] = ["fingerprint", "audit", "encryption", "webhook"]


def test_subkeys_are_those_of_rfc_5869() -> None:
    import hashlib
    import hmac

    pseudorandom = hmac.digest(bytes(32), ONE, hashlib.sha256)
    expected = hmac.digest(pseudorandom, b"toolgen 1 audit\x01", hashlib.sha256)
    assert Keys(ONE).subkey("audit") == expected
    assert Keys(ONE).id == hmac.digest(pseudorandom, b"toolgen 1 id\x01", hashlib.sha256)[:4].hex()


def test_each_purpose_and_each_key_has_a_subkey_of_its_own_that_stays() -> None:
    found = [keys.subkey(purpose) for keys in (Keys(ONE), Keys(TWO)) for purpose in PURPOSES]
    assert {len(key) for key in found} == {32}
    assert len({*found, ONE, TWO}) == 10
    assert found[:4] == [Keys(ONE, [TWO]).subkey(purpose) for purpose in PURPOSES]
    with pytest.raises(ValueError, match="there is no key for 'id'"):
        Keys(ONE).subkey("id")  # type: ignore[arg-type]


def test_what_was_written_with_a_previous_key_is_read_with_it() -> None:
    keys = Keys(ONE, [TWO, ONE])
    assert re.fullmatch("[0-9a-f]{8}", keys.id)
    assert keys.by_id(keys.id) is keys
    assert keys.by_id(Keys(TWO).id).subkey("audit") == Keys(TWO).subkey("audit")
    with pytest.raises(CredentialsError, match="neither the key nor a previous one"):
        Keys(ONE).by_id(Keys(TWO).id)


def test_keys_show_nothing_and_are_not_pickled() -> None:
    keys = Keys(ONE, [TWO])
    keys.subkey("audit")
    assert repr(keys) == str(keys) == f"<Keys {keys.id}, previous {Keys(TWO).id}>"
    assert keys.id not in ONE.hex()
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(keys)


@pytest.mark.parametrize(
    "text",
    [
        ONE.hex(),
        ONE.hex().upper(),
        f" {ONE.hex()}\n",
        base64.urlsafe_b64encode(ONE).decode(),
        base64.urlsafe_b64encode(ONE).decode().rstrip("="),
        base64.b64encode(ONE).decode(),
    ],
)
def test_a_key_is_hexadecimal_or_base64(text: str, tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(text)
    file.chmod(0o600)
    for keys in (Keys.load(text), Keys.load(file=file), Keys.load(environ={"TOOLGEN_KEY": text})):
        assert keys.subkey("audit") == Keys(ONE).subkey("audit")


def test_both_alphabets_of_base64_are_the_same_key() -> None:
    key = bytes(range(0xC3, 0x100))
    assert "+" in base64.b64encode(key).decode()
    assert Keys.load(base64.b64encode(key).decode()).id == Keys.load(base64.urlsafe_b64encode(key).decode()).id


def test_the_first_of_several_keys_is_in_use_and_a_given_one_comes_before_a_file_and_the_environment(
    tmp_path: Path,
) -> None:
    file = tmp_path / "key"
    file.write_text(f"{TWO.hex()}\n{ONE.hex()}\n")
    file.chmod(0o400)
    environ = {"TOOLGEN_KEY": ONE.hex()}
    assert Keys.load(ONE.hex(), file=file).id == Keys(ONE).id
    assert Keys.load(file=file, environ=environ).id == Keys(TWO).id
    assert Keys.load(file=file).by_id(Keys(ONE).id).id == Keys(ONE).id
    assert Keys.load(f"{ONE.hex()}, {TWO.hex()}").by_id(Keys(TWO).id).id == Keys(TWO).id
    assert Keys.load(environ=environ).id == Keys(ONE).id


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "holds no key"),
        ("s3cret pass phrase", "holds what is no key"),
        ("s3cret!", "is no key"),
        (ONE.hex()[:-2], "shorter than 32 bytes"),
        (base64.b64encode(ONE[:31]).decode(), "shorter than 32 bytes"),
        (base64.b64encode(ONE).decode()[:-2], "is no key"),
        (base64.b64encode(ONE).decode()[:-3], "is no key"),
        ("00" * 32, "is not random"),
        ("0123456789abcdef" * 4, "is not random"),
        ("a" * 64, "is not random"),
        ("A" * 43, "is not random"),
        (f"{ONE.hex()} {'00' * 32}", "a previous key is not random"),
        (f"{ONE.hex()} s3cret!", "holds what is no key"),
    ],
)
def test_what_is_no_random_key_is_refused_without_being_shown(text: str, says: str) -> None:
    with pytest.raises(CredentialsError, match=says) as caught:
        Keys.load(text)
    shown = str(caught.value)
    assert not [word for word in text.split() if len(word) > 5 and word in shown]
    with pytest.raises(CredentialsError, match="shorter"):
        Keys(b"short")


def test_no_key_is_an_error_that_says_how_to_give_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("", "  "):
        with pytest.raises(CredentialsError, match="set TOOLGEN_KEY, or name a key file"):
            Keys.load(environ={"TOOLGEN_KEY": value})
    monkeypatch.setenv("TOOLGEN_KEY", ONE.hex())
    assert Keys.load().id == Keys(ONE).id


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
@pytest.mark.parametrize("mode", [0o640, 0o620, 0o604, 0o602, 0o610, 0o644])
def test_a_key_file_that_others_can_reach_is_refused(mode: int, tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(ONE.hex())
    file.chmod(mode)
    (tmp_path / "link").symlink_to(file)
    for path in (file, tmp_path / "link"):
        with pytest.raises(CredentialsError, match="can be read or written by others"):
            Keys.load(file=path)


def test_a_key_file_that_is_none_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CredentialsError, match="cannot be read: No such file"):
        Keys.load(file=tmp_path / "none")
    with pytest.raises(CredentialsError, match="cannot be read: Is a directory"):
        Keys.load(file=tmp_path)
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(CredentialsError, match="holds no key"):
        Keys.load(file=tmp_path / "pipe")


def test_a_new_key_file_is_its_owners_alone_and_random(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        keys = create_key_file(tmp_path / "a.key")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.key").stat().st_mode) == 0o600
    assert Keys.load(file=tmp_path / "a.key").id == keys.id
    assert create_key_file(tmp_path / "b.key").id != keys.id
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.key", "b.key"]  # no draft is left


@pytest.mark.parametrize("there", ["file", "empty", "link"])
def test_a_file_that_is_there_is_never_overwritten(there: str, tmp_path: Path) -> None:
    target = tmp_path / "a.key"
    if there == "link":
        target.symlink_to(tmp_path / "elsewhere")
    else:
        target.write_text("mine" if there == "file" else "")
    with pytest.raises(CredentialsError, match="never overwritten"):
        create_key_file(target)
    assert there == "link" or target.read_text() == ("mine" if there == "file" else "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.key"]


def test_a_key_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CredentialsError, match="cannot be written: No such file"):
        create_key_file(tmp_path / "none" / "a.key")
