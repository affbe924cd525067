"""A classic mistake: a charge that the provider does not dedupe is claimed, and is to be tried again when nobody knows what became of it.
`hapax explore --worker` finds it (docs/explore.md), and what it suggests mends it."""
import hapax


@hapax.function("checkout")
def checkout(ctx, input):
    ctx.step("charge", lambda key: "charged", effect="claimed", on_unknown="retry")
    return {"paid": True}


hapax.work([checkout])
