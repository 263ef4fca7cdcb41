from __future__ import annotations

import string
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolgen.policy.durations import LONGEST, meant_duration, read_duration, written_duration

ANY_TEXT = st.one_of(
    st.text(max_size=20),
    st.text("PTWDHMSY0123456789.- " + string.ascii_lowercase, max_size=12),
    st.from_regex(r"[0-9]{1,12} ?(s|min|hours|days|weeks|months)", fullmatch=True),
)


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("PT30M", timedelta(minutes=30)),
        ("PT90M", timedelta(minutes=90)),
        ("P1D", timedelta(days=1)),
        ("P2W", timedelta(weeks=2)),
        ("P1DT12H", timedelta(days=1, hours=12)),
        ("P1DT2H3M4S", timedelta(days=1, hours=2, minutes=3, seconds=4)),
        ("PT0.000001S", timedelta(microseconds=1)),
        ("PT0H5M", timedelta(minutes=5)),
        ("P36500D", LONGEST),
    ],
)
def test_an_iso_8601_duration_is_read(text: str, length: timedelta) -> None:
    assert read_duration(text) == length


@pytest.mark.parametrize(
    ("text", "reason", "meant"),
    [
        *[(text, "no ISO 8601 duration", "PT30M") for text in ("30m", " 30 min ", "30 Minutes", "pt30m")],
        ("5 minutes", "no ISO 8601 duration", "PT5M"),
        ("PT5M\n", "no ISO 8601 duration", "PT5M"),
        ("45s", "no ISO 8601 duration", "PT45S"),
        ("12 hrs", "no ISO 8601 duration", "PT12H"),
        ("P12H", "no ISO 8601 duration", "PT12H"),
        ("PT2D", "no ISO 8601 duration", "P2D"),
        ("2 weeks", "no ISO 8601 duration", "P2W"),
        *[(text, "no fixed length", "") for text in ("P1Y", "P1M", "P30M", "P1Y2M3D", "P1YT5M", "P2M1D")],
        *[
            (text, "no ISO 8601 duration", "")
            for text in ("5 months", "p1m", "1 mo", "2 years", "30", "1h30m", "0m", "-5m")
        ],
        *[(text, "no ISO 8601 duration", "") for text in ("", " ", "P", "PT", "P1DT", "P1WT1H", "P1W2D", "PT5M1H")],
        *[(text, "no ISO 8601 duration", "") for text in ("-PT5M", "PT-5M", "+PT5M", "PT1.5H", "PT1,5S")],
        *[(text, "no ISO 8601 duration", "") for text in ("PT٣M", "٣m", "PT0.0000001S", "00:05:00")],
        *[(text, "longer than zero", "") for text in ("PT0S", "P0D", "P0W", "P0DT0H0M0.000S")],
        *[(text, "at most 36500 days", "") for text in ("P36501D", "PT876001H", f"P{'9' * 400}W", f"P{'9' * 5000}D")],
        ("9" * 5000 + "m", "no ISO 8601 duration", ""),
        ("999999999 weeks", "no ISO 8601 duration", ""),
    ],
)
def test_what_is_no_duration_is_refused_with_the_one_that_was_meant(text: str, reason: str, meant: str) -> None:
    with pytest.raises(ValueError, match=reason):
        read_duration(text)
    assert meant_duration(text) == meant


@settings(max_examples=200)
@given(st.timedeltas(min_value=timedelta(microseconds=1), max_value=LONGEST))
def test_a_duration_is_written_as_it_is_read(length: timedelta) -> None:
    assert read_duration(written_duration(length)) == length


@settings(max_examples=200)
@given(ANY_TEXT)
def test_any_text_is_a_positive_duration_or_a_value_error_and_every_suggestion_is_a_duration(text: str) -> None:
    try:
        length = read_duration(text)
    except ValueError:
        meant = meant_duration(text)
        assert not meant or read_duration(meant)
    else:
        assert timedelta(0) < length <= LONGEST
