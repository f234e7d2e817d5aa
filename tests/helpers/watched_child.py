"""A child for tests of the parent of a training process: `python -m watched_child PIPE WHAT`."""

import os
import signal
import sys
import time

pipe, what = int(sys.argv[1]), sys.argv[2]
if what == "unmet":
    os.abort()
os.write(pipe, b".")
if what == "slow":
    for _ in range(8):
        time.sleep(0.25)
        os.write(pipe, b".")
elif what == "stops its parent":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    time.sleep(0.2)
    os.kill(os.getppid(), signal.SIGTERM)
    time.sleep(600)
elif what == "unwatched":
    os.close(pipe)
    time.sleep(2)
elif what.isdecimal():
    sys.exit(int(what))
else:
    os.kill(os.getpid(), getattr(signal, what))
    time.sleep(600)
