"""Starlette's client, which would rather have a newer one than httpx below it, and says so."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient

__all__ = ["ORIGIN", "PORT", "TestClient"]

PORT = 8765
ORIGIN = f"http://127.0.0.1:{PORT}"
