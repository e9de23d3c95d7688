"""Async functions of JavaScript as coroutine functions.

Where a loop of asyncio's runs, the call of an async function is a coroutine, as that of an ``async def``: the loop goes
on while JavaScript has the call. Elsewhere nobody could await it, and the thread waits as for any other function.
"""

import contextlib

from .javascript_functions import Patience, counted, put_down


# law python/await_answer: python/coroutine_functions
async def await_answer(function, request):
    """Await what JavaScript answers to the request for a function, which stays alive meanwhile."""
    import asyncio

    loop = asyncio.get_running_loop()
    woken = loop.create_future()

    def wake():
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody awaits it any more
            loop.call_soon_threadsafe(woken.set_result, None)

    request.when_answered = wake
    patience = Patience(request, function.__name__)
    with counted():
        put_down(request)
        try:
            # Also if a signal's handler has kept JavaScript from waking the loop.
            while not request.answered.acquire(blocking=False):
                if not (await asyncio.wait([woken], timeout=patience.pause()))[0]:
                    patience.look()
        finally:
            request.claim(False)  # a call that nobody awaits any more does not begin
    return request.result()
