"""Takes away what a process does not need to draw a file: memory, time, and on Linux
every system call but those that compute. Imports nothing of the product."""

from __future__ import annotations

import ctypes
import platform
import resource
import sys

MEMORY_BYTES = 1024 * 1024 * 1024  # address space, of which the libraries take a third
CPU_SECONDS = 10
OPEN_FILES = 16

_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _FILTER = 38, 22, 2
_RETURN_ERROR, _RETURN_ALLOW, _KILL = 0x0005_0001, 0x7FFF_0000, 0x8000_0000  # EPERM
_LOAD, _EQUALS, _RETURN = 0x20, 0x15, 0x06  # of BPF: load word, jump if equal, return
# By machine: the constant of the architecture, and the numbers of the system calls that
# stay. None of them opens a file or a socket, or starts or ends another process.
_CALLS = {
    "x86_64": (
        0xC000_003E,
        # read, write, close, fstat, lseek, mmap, mprotect, munmap, brk, rt_sigaction,
        # rt_sigprocmask, rt_sigreturn, mremap, madvise, getpid, exit, gettimeofday,
        # sigaltstack, gettid, futex, sched_getaffinity, clock_gettime, exit_group,
        # getrandom, sched_yield
        frozenset((0, 1, 3, 5, 8, 9, 10, 11, 12, 13, 14, 15, 25, 28, 39, 60, 96))
        | {131, 186, 202, 204, 228, 231, 318, 24},
    ),
    "aarch64": (
        0xC000_00B7,
        # the same, by the numbers of arm64
        frozenset((63, 64, 57, 80, 62, 222, 226, 215, 214, 134, 135, 139, 216, 233))
        | {172, 93, 169, 132, 178, 98, 123, 113, 94, 278, 124},
    ),
}


class NotConfined(Exception):
    """The kernel refused a limit, so nothing hostile may be read."""


class _Instruction(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_ushort),
        ("if_true", ctypes.c_ubyte),
        ("if_false", ctypes.c_ubyte),
        ("value", ctypes.c_uint32),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("first", ctypes.POINTER(_Instruction)))


def confine_process() -> None:
    """Limit this process for the rest of its life. Import everything first: afterwards
    no file can be opened. On systems other than Linux only memory, time and files are
    limited. Raises NotConfined."""
    for kind, limit in (
        (resource.RLIMIT_AS, MEMORY_BYTES),
        (resource.RLIMIT_CPU, CPU_SECONDS),
        (resource.RLIMIT_NOFILE, OPEN_FILES),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        try:
            resource.setrlimit(kind, (limit, limit))
        except (ValueError, OSError) as error:
            raise NotConfined(str(error)) from None
    if sys.platform == "linux":
        _filter_system_calls()


def _filter_system_calls() -> None:
    architecture, allowed = _CALLS.get(platform.machine(), (0, frozenset()))
    if not allowed:
        raise NotConfined(platform.machine())
    count = len(allowed)
    steps = [
        (_LOAD, 0, 0, 4),  # the architecture that the call is made for
        (_EQUALS, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, 0),  # the number of the call
        *((_EQUALS, count - i, 0, number) for i, number in enumerate(allowed)),
        (_RETURN, 0, 0, _RETURN_ERROR),
        (_RETURN, 0, 0, _RETURN_ALLOW),
    ]
    code = (_Instruction * len(steps))(*(_Instruction(*step) for step in steps))
    program = _Program(len(steps), code)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(
        _PR_SET_SECCOMP, _FILTER, ctypes.byref(program), 0, 0
    ):
        raise NotConfined(ctypes.get_errno())
