"""A plug-in whose import kills every process but the first, as often as the file `deaths` says."""

import multiprocessing
import os
import signal
from pathlib import Path

from dialbench.adapter import Adapter


class Late(Adapter):
    name = "late"

    def respond(self, contexts, decoding, run):
        return ["late" for _ in contexts]


DEATHS = Path(os.environ["DEATHS"])
if multiprocessing.parent_process() is not None and (left := int(DEATHS.read_text())):
    DEATHS.write_text(str(left - 1))
    os.kill(os.getpid(), signal.SIGKILL)
