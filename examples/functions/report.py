"""A function that a schedule starts, every second: the asynchronous flavour. Its slots are runs with keys of their own, so each is there once."""
import asyncio
import signal

import hapax


async def count(key):
    await asyncio.sleep(0)  # some asynchronous library
    return {"orders": 3}


@hapax.function("report", version="1")
async def report(ctx, input):
    counted, now = await ctx.step("count", count), await ctx.now()
    await ctx.attribute("team", input["team"])
    return {"orders": counted["orders"], "late": now < 0}


async def main():
    client = hapax.AsyncClient()
    worker = asyncio.ensure_future(hapax.work_async([report], lease="5s"))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.cancel)
    while not worker.done():
        try:
            await client.schedule("report", workflow="report", every="1s", input={"team": "sales"})
            break
        except hapax.HapaxError:  # the name is known as soon as somebody polls for it
            await asyncio.sleep(0.2)
    await asyncio.gather(worker, return_exceptions=True)


asyncio.run(main())
