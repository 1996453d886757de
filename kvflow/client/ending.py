"""Telling a server that a run is over, so that it expects nothing more of it."""

from http import HTTPStatus
from urllib.parse import quote

from kvflow.client.http import Http, RefusedError


async def end_run(http: Http, client: str, run: str, expect_next: bool = True) -> bool:
    """Say that a run is over, and whether its client begins another in its place.

    Returns:
        Whether the server has anything to do with runs. One without kvflow has no such route: there
        is no use in telling it of another.

    Raises:
        ServerUnreachable, NotAuthorised, TimedOutError, RefusedError, NonsenseError: it could not
            be said this time.
    """
    path = f"/kvflow/runs/{quote(client, safe='')}/{quote(run, safe='')}/end"
    query = "" if expect_next else "?expect_next=false"
    try:
        await http.post(path + query, {}, f"ending run {run!r}")
    except RefusedError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        return False
    return True
