"""The kernel's half of the jail: what Linux refuses to a process, whatever its Python does.

Loaded by ``jail.py`` from its file, in the process that is to be walled in; standard library only.
Landlock (https://docs.kernel.org/userspace-api/landlock.html) keeps files outside the folder out of
reach, a filter of system calls keeps sockets, other processes and their signals out, and all
capabilities go. What a kernel lacks is left out; the names of the walls that stand are returned.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import struct
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2

# --- files ----------------------------------------------------------------------------------------

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # the same on every architecture
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
REMOVE_DIR, REMOVE_FILE, MAKE_DIR, MAKE_REG = 1 << 4, 1 << 5, 1 << 7, 1 << 8
TRUNCATE = 1 << 14
#: All that a version of Landlock can refuse, by version; sockets and signals come with 4 and 6.
HANDLED = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
NO_TCP, NO_SIGNALS = 0b11, 0b11
READING = EXECUTE | READ_FILE | READ_DIR
WORKING = READ_FILE | READ_DIR | WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE
#: Where Python and the libraries of its modules lie, besides its own prefix.
LIBRARIES = ("/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib", "/lib64", "/nix/store",
             "/etc/ld.so.cache")  # fmt: skip

# --- system calls ---------------------------------------------------------------------------------

#: Refused altogether: x86-64's number, AArch64's (None: there is none).
REFUSED = {
    "socket": (41, 198), "connect": (42, 203), "bind": (49, 200), "listen": (50, 201),
    "sendto": (44, 206), "sendmsg": (46, 211), "socketpair": (53, 199), "fork": (57, None),
    "vfork": (58, None), "execve": (59, 221), "execveat": (322, 281), "ptrace": (101, 117),
    "tkill": (200, 130), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240),
    "pidfd_open": (434, 434), "pidfd_getfd": (438, 438), "pidfd_send_signal": (424, 424),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "unshare": (272, 97),
    "setns": (308, 268), "mknod": (133, None), "mknodat": (259, 33), "symlink": (88, None),
    "symlinkat": (266, 36), "link": (86, None), "linkat": (265, 37), "bpf": (321, 280),
    "userfaultfd": (323, 282), "perf_event_open": (298, 241), "io_uring_setup": (425, 425),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    "setpriority": (141, 140), "sched_setscheduler": (144, 119), "sched_setparam": (142, 118),
    "sched_setaffinity": (203, 122), "sched_setattr": (314, 274), "ioprio_set": (251, 30),
    "migrate_pages": (256, 238), "move_pages": (279, 239),
}  # fmt: skip
#: Allowed upon this very process: its own number, or 0, comes first.
ONLY_SELF = {"kill": (62, 129), "tgkill": (234, 131), "prlimit64": (302, 261)}
CLONE, CLONE3 = (56, 220), (435, 435)
CLONE_THREAD = 0x10000
ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
X32 = 0x4000_0000  # the bit of x86-64's other set of numbers

LOAD, JUMP_EQUAL, JUMP_SET, JUMP_FROM, RETURN = 0x20, 0x15, 0x45, 0x35, 0x06
ALLOW, ERROR, KILL = 0x7FFF_0000, 0x0005_0000, 0x8000_0000
EPERM, ENOSYS = 1, 38
NUMBER, ARCHITECTURE, FIRST_ARGUMENT = 0, 4, 16  # offsets in what a filter sees (little endian)


def build(folder: str, readable: tuple[str, ...]) -> list[str]:
    """Wall this process in, for good; the names of what stands."""
    if sys.platform != "linux":
        return []
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        return []
    walls = []
    if _landlock(libc, folder, (*LIBRARIES, *readable)):
        walls.append("files")
    _drop_capabilities(libc)
    if _filter(libc):
        walls.append("calls")
    return walls


def _landlock(libc: ctypes.CDLL, folder: str, readable: tuple[str, ...]) -> bool:
    version = libc.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), 1)
    if version < 1:
        return False
    handled = HANDLED[max(known for known in HANDLED if known <= version)]
    fields = [handled]
    if version >= 4:
        fields.append(NO_TCP)
    if version >= 6:
        fields.append(NO_SIGNALS)
    packed = struct.pack(f"={len(fields)}Q", *fields)
    ruleset = libc.syscall(CREATE_RULESET, packed, ctypes.c_size_t(len(packed)), 0)
    if ruleset < 0:
        return False
    try:
        working = (WORKING | TRUNCATE) & handled
        for path, access in [(folder, working), *((path, READING) for path in readable)]:
            _allow(libc, ruleset, path, access)
        _allow(libc, ruleset, os.devnull, READ_FILE | WRITE_FILE)
        return bool(libc.syscall(RESTRICT_SELF, ruleset, 0) == 0)
    finally:
        os.close(ruleset)


def _allow(libc: ctypes.CDLL, ruleset: int, path: str, access: int) -> None:
    with contextlib.suppress(OSError):  # a place that this system has not
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        if not os.path.isdir(path):  # noqa: PTH112 - pathlib would load half the library
            access &= OF_FILES
        libc.syscall(ADD_RULE, ruleset, 1, struct.pack("=Qi", access, place), 0)
        os.close(place)


def _drop_capabilities(libc: ctypes.CDLL) -> None:
    """For root, and for who is root of a namespace of its own: limits cannot be raised again."""
    header = struct.pack("=Ii", 0x2008_0522, 0)
    libc.capset(header, bytes(24))


def _filter(libc: ctypes.CDLL) -> bool:
    column, architecture = ARCHITECTURES.get(platform.machine(), (None, 0))
    if column is None or sys.byteorder != "little":
        return False
    program = [(LOAD, 0, 0, ARCHITECTURE), (JUMP_EQUAL, 1, 0, architecture), (RETURN, 0, 0, KILL)]
    program.append((LOAD, 0, 0, NUMBER))
    if column == 0:
        program += [(JUMP_FROM, 0, 1, X32), (RETURN, 0, 0, ERROR | ENOSYS)]
    for numbers in REFUSED.values():
        if (number := numbers[column]) is not None:
            program += [(JUMP_EQUAL, 0, 1, number), (RETURN, 0, 0, ERROR | EPERM)]
    program += [(JUMP_EQUAL, 0, 1, CLONE3[column]), (RETURN, 0, 0, ERROR | ENOSYS)]
    program += _unless(CLONE[column], [(JUMP_SET, 1, 0, CLONE_THREAD)])
    for numbers in ONLY_SELF.values():
        own = [(JUMP_EQUAL, 2, 0, os.getpid()), (JUMP_EQUAL, 1, 0, 0)]
        program += _unless(numbers[column], own)
    program.append((RETURN, 0, 0, ALLOW))
    code = b"".join(struct.pack("=HBBI", *step) for step in program)
    buffer = ctypes.create_string_buffer(code, len(code))
    whole = struct.pack("@HP", len(program), ctypes.addressof(buffer))
    return bool(libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, whole, 0, 0) == 0)


Step = tuple[int, int, int, int]


def _unless(number: int, tests: list[Step]) -> list[Step]:
    """Refuse a call unless a test of its first argument jumps over the refusal."""
    refusal: Step = (RETURN, 0, 0, ERROR | EPERM)
    inner: list[Step] = [(LOAD, 0, 0, FIRST_ARGUMENT), *tests, refusal, (RETURN, 0, 0, ALLOW)]
    return [(JUMP_EQUAL, 0, len(inner), number), *inner]
