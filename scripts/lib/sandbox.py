"""Runs a command under what a unit says of system calls, without systemd as manager.

    python3 sandbox.py UNIT COMMAND [ARGUMENT…]

A call that the unit's SystemCallFilter= does not allow kills the command with SIGSYS, where the unit itself would have
it fail with EPERM: a command that lives never made one. RestrictAddressFamilies= and MemoryDenyWriteExecute= answer as
under systemd. Beyond the unit, no file can be created or written to (ProtectSystem=strict only makes them read-only).
Environment=, UMask= and LimitNOFILE= are applied as they stand there; no privilege can be gained and no core written.

The filter is made by libseccomp, which systemd itself uses, from the sets that this machine's systemd-analyze lists.
"""

import ctypes
import errno
import mmap
import os
import resource
import shlex
import socket
import subprocess
import sys

KILL, ALLOW = 0x80000000, 0x7FFF0000
PR_SET_NO_NEW_PRIVS = 38
EQUAL, MASKED_EQUAL = 4, 7  # of `enum scmp_compare`
FAMILIES = 46  # AF_MAX of Linux 6


class Comparison(ctypes.Structure):
    """libseccomp's `struct scmp_arg_cmp`."""

    _fields_ = [
        ("argument", ctypes.c_uint), ("operation", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64),
    ]


def refuse_with(number):
    return 0x00050000 | number


def assignments(path):
    with open(path, encoding="utf-8") as unit:
        lines = [line.rstrip("\n") for line in unit if "=" in line and line[0] not in "#;"]
    return [tuple(line.split("=", 1)) for line in lines]


def values(unit, name):
    return [value for key, value in unit if key == name]


def expand(name):
    """The system calls of a set, or the call itself."""
    if not name.startswith("@"):
        return {name}
    listed = subprocess.run(["systemd-analyze", "--no-pager", "syscall-filter", name], check=True,
                            capture_output=True, text=True).stdout.splitlines()
    members = [line.strip() for line in listed[1:] if line.strip() and not line.strip().startswith("#")]
    return set().union(*map(expand, members))


def allowed(unit):
    calls = expand("@default")  # which systemd adds by itself
    for value in values(unit, "SystemCallFilter"):
        named = set().union(*map(expand, value.lstrip("~").split()))
        calls = calls - named if value.startswith("~") else calls | named
    return calls


class Filter:
    """One filter; the kernel obeys the strictest of all that a process has."""

    library = None

    def __init__(self, otherwise):
        if Filter.library is None:
            Filter.library = ctypes.CDLL("libseccomp.so.2")
            Filter.library.seccomp_init.restype = ctypes.c_void_p
        self.context = ctypes.c_void_p(self.library.seccomp_init(ctypes.c_uint32(otherwise)))

    def add(self, action, name, *comparisons):
        number = self.library.seccomp_syscall_resolve_name(name.encode())
        if number < 0:
            return  # a call of another architecture
        rules = (Comparison * max(1, len(comparisons)))(*comparisons)
        added = self.library.seccomp_rule_add_array(
            self.context, ctypes.c_uint32(action), number, len(comparisons), rules)
        if added:
            sys.exit(f"sandbox: no rule for {name}: {os.strerror(-added)}")

    def load(self):
        loaded = self.library.seccomp_load(self.context)
        if loaded:
            sys.exit(f"sandbox: the filter cannot be loaded: {os.strerror(-loaded)}")


def has_bits(argument, bits):
    return Comparison(argument, MASKED_EQUAL, bits, bits)


def arguments_filter(unit):
    """What depends on a call's arguments, or changes files."""
    made = Filter(ALLOW)
    families = {getattr(socket, name) for name in " ".join(values(unit, "RestrictAddressFamilies")).split()}
    for family in set(range(FAMILIES)) - families if families else ():
        made.add(refuse_with(errno.EAFNOSUPPORT), "socket", Comparison(0, EQUAL, family, 0))
    if "yes" in values(unit, "MemoryDenyWriteExecute"):
        made.add(refuse_with(errno.EPERM), "mmap", has_bits(2, mmap.PROT_WRITE | mmap.PROT_EXEC))
        made.add(refuse_with(errno.EPERM), "mprotect", has_bits(2, mmap.PROT_EXEC))
        made.add(refuse_with(errno.EPERM), "pkey_mprotect", has_bits(2, mmap.PROT_EXEC))
    made.add(KILL, "open", has_bits(1, os.O_CREAT))
    made.add(KILL, "openat", has_bits(2, os.O_CREAT))
    for name in ("creat", "mkdir", "mkdirat", "rename", "renameat", "renameat2", "unlink", "unlinkat", "truncate"):
        made.add(KILL, name)
    return made


def main():
    unit, command = assignments(sys.argv[1]), sys.argv[2:]
    calls = Filter(KILL)
    for name in sorted(allowed(unit)):
        calls.add(ALLOW, name)
    arguments = arguments_filter(unit)
    environment = dict(os.environ)
    environment.update(word.split("=", 1) for value in values(unit, "Environment") for word in shlex.split(value))
    os.umask(int(values(unit, "UMask")[-1], 8))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    files = int(values(unit, "LimitNOFILE")[-1])
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    ctypes.CDLL(None).prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    arguments.load()
    calls.load()  # last, because it may forbid to load another
    os.execvpe(command[0], command, environment)


main()
