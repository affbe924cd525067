"""A classic mistake: the code leaves something to chance between its steps. Another worker, which plays it anew from the journal, may go the
other way: it diverges. `hapax explore --worker` finds it (docs/explore.md); experiment.mended.py is mended."""
import random

import hapax


@hapax.function("offer")
def offer(ctx, input):
    variant = "red" if random.random() < 0.5 else "blue"
    ctx.step("show " + variant, lambda key: variant)
    ctx.sleep("a day", "1d")
    return {"shown": True}


hapax.work([offer])
