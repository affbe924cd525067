"""The twin of experiment.py: chance is asked of ctx, and is the same in each replay."""
import hapax


@hapax.function("offer")
def offer(ctx, input):
    variant = "red" if ctx.random() < 0.5 else "blue"
    ctx.step("show " + variant, lambda key: variant)
    ctx.sleep("a day", "1d")
    return {"shown": True}


hapax.work([offer])
