"""Reads the body of an answer until it ends, enough is there, or the time is up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from enum import Enum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import httpx2

# Others, and several at once, unpack a chunk to any size before it is counted; they were not asked for.
UNPACKED: Final = ("", "identity", "gzip", "deflate")


class End(Enum):
    """Why reading stopped."""

    complete = "complete"
    enough = "enough"  # the reader wanted no more
    late = "late"
    silent = "silent"  # no byte came for as long as one is waited for
    broken = "broken"  # the connection, or how the body is packed


def packing(response: httpx2.Response) -> str:
    """How the body is packed, if in a way that is not unpacked; otherwise nothing."""
    coding = response.headers.get("content-encoding", "").strip().lower()
    return "" if coding in UNPACKED else coding


async def read(response: httpx2.Response, until: float, take: Callable[[bytes], bool]) -> End:
    """Give the body to `take`, unpacked and piece by piece, for as long as it returns True, and close the response.

    `until` is a time of the running event loop. Pieces are at most about 1 MB, however small they were packed.
    """
    import httpx2

    now = asyncio.get_running_loop().time
    pieces = response.aiter_raw() if packing(response) else response.aiter_bytes()
    try:
        async with asyncio.timeout_at(until), aclosing(pieces):
            async for piece in pieces:
                if not take(piece):
                    return End.enough
                if now() >= until:  # pieces that are all there already let no timer run
                    return End.late
    except TimeoutError:
        return End.late
    except httpx2.ReadTimeout:
        return End.silent
    except Exception:  # noqa: BLE001 - whatever a transport raises, the call was carried out
        return End.broken
    finally:
        await response.aclose()
    return End.complete
