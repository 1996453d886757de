"""Errors of the control plane as an HTTP client reads them: what, why, and what to do."""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute


class ControlError(Exception):
    """A request that is not done.

    Args:
        status: HTTP status.
        what: what failed; `why` and `hint` as in `kvflow.errors.KvflowError`.
    """

    def __init__(self, status: int, what: str, why: str = "", hint: str = "") -> None:
        super().__init__(what)
        self.status, self.what, self.why, self.hint = status, what, why, hint

    def body(self) -> dict[str, Any]:
        """The answer's JSON. `message` is for clients that know OpenAI's errors."""
        message = ": ".join(part for part in (self.what, self.why) if part)
        error = {"message": message, "what": self.what, "why": self.why, "hint": self.hint}
        return {"error": error}


async def answer(_: Request, error: Exception) -> JSONResponse:
    """FastAPI's handler for a ControlError."""
    assert isinstance(error, ControlError)
    return JSONResponse(error.body(), error.status)


class ControlRoute(APIRoute):
    """A route whose refusals of parameters read like every other error of the control plane."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """As FastAPI's."""
        handle = super().get_route_handler()

        async def refusing(request: Request) -> Response:
            try:
                return await handle(request)
            except RequestValidationError as error:
                why = "; ".join(f"{one['loc'][-1]}: {one['msg']}" for one in error.errors())
                raise ControlError(
                    400, "a parameter makes no sense", why, "/docs describes them"
                ) from error

        return refusing
