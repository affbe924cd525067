"""Takes turns of the functions, as long as it runs. As many of these as you like, on as many machines."""
import signal

import hapax
from order import order

worker = hapax.Worker([order])
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda *_: worker.stop())
worker.run()
