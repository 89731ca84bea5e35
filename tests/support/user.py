"""Other users of the machine: a child process that gives up root and hands back what a function returned."""
import os
import pickle
import traceback

ADA, EVE = 61001, 61002  # numbers that no machine gives to a user


def can_be():
    return os.geteuid() == 0


def as_user(uid, function, *arguments, groups=(), **more):
    """function(*arguments) as this user, in a process of its own; its exception is raised here."""
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.setgroups(list(groups))
            os.setgid(uid)
            os.setuid(uid)
            result = (True, function(*arguments, **more))
        except BaseException as e:  # handed over, whatever it is
            result = (False, f"as uid {uid}: {e!r}\n{traceback.format_exc()}")
        with os.fdopen(theirs, "wb") as f:
            f.write(pickle.dumps(result))
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours, "rb") as f:
        raw = f.read()
    os.waitpid(child, 0)
    good, value = pickle.loads(raw)
    if not good:
        raise AssertionError(value)
    return value
