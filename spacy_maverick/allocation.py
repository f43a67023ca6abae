"""Memory that the C library keeps for the next step instead of handing it back to the system.

Every step of an encoder asks for the same large blocks again. glibc takes each block of some size
from the system and returns it when it is freed, and it returns the end of its heap as soon as that
is free: then the system has to clear every page anew, some hundred thousand for a page of text.
Told to take no such blocks and to keep the end of its heap, it reuses what it has. (A higher
threshold for such blocks does not do: glibc takes none beyond 32 MB, and the encoder needs more.)
"""

import ctypes
import functools
import os
from collections.abc import Callable, Mapping

#: Set it to 0 to leave the C library as it is.
SWITCH = "SPACY_MAVERICK_KEEP_MEMORY"
#: What glibc itself reads. Who sets one of these has chosen already.
USERS_OWN = (
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_TRIM_THRESHOLD_",
    "MALLOC_TOP_PAD_",
    "MALLOC_MMAP_MAX_",
)
TUNABLES = "GLIBC_TUNABLES"
#: The numbers that mallopt knows settings by, and our values: how many blocks come from the system
#: one by one, and how much free memory at the end of the heap is kept.
M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4
SETTINGS = {M_MMAP_MAX: 0, M_TRIM_THRESHOLD: 1 << 30}


def keep_memory(
    environment: Mapping[str, str] | None = None,
    mallopt: Callable[[int, int], int] | None = None,
) -> bool:
    """Let the C library keep memory, where it is glibc and the user has not chosen otherwise.

    environment (Optional[Mapping[str, str]]): Variables, in place of the process's own.
    mallopt (Optional[Callable[[int, int], int]]): What changes a setting, in place of the C
        library's own.
    RETURNS (bool): Whether it does.
    """
    mallopt = mallopt or _mallopt()
    if mallopt is None or _has_chosen(environment):
        return False
    return all([mallopt(setting, value) for setting, value in SETTINGS.items()])


def give_back(
    environment: Mapping[str, str] | None = None, trim: Callable[[int], int] | None = None
) -> bool:
    """Hand free memory back after all, where `keep_memory` keeps it: after a step that will not
    come again in the same size, so that the next one would find holes that are too small for it.

    environment (Optional[Mapping[str, str]]): Variables, in place of the process's own.
    trim (Optional[Callable[[int], int]]): What hands memory back, in place of the C library's own.
    RETURNS (bool): Whether the C library was told to.
    """
    trim = trim or _malloc_trim()
    if trim is None or _has_chosen(environment):
        return False
    trim(0)
    return True


def _has_chosen(environment: Mapping[str, str] | None) -> bool:
    chosen = os.environ if environment is None else environment
    if chosen.get(SWITCH) == "0" or any(name in chosen for name in USERS_OWN):
        return True
    return "glibc.malloc" in chosen.get(TUNABLES, "")


def _mallopt() -> Callable[[int, int], int] | None:
    return _of_glibc("mallopt", ctypes.c_int, ctypes.c_int)


@functools.cache
def _malloc_trim() -> Callable[[int], int] | None:
    return _of_glibc("malloc_trim", ctypes.c_size_t)


def _of_glibc(name: str, *types: type) -> Callable[..., int] | None:
    """A function of the C library, if that is glibc; others have none, or none that listens."""
    try:
        if not (os.confstr("CS_GNU_LIBC_VERSION") or "").startswith("glibc"):
            return None
        function = getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError, ValueError):
        return None
    function.argtypes, function.restype = types, ctypes.c_int
    return function
