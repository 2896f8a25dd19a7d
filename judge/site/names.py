"""Names of the site's files, into which nothing that anybody else wrote goes as it is."""

from __future__ import annotations

import hashlib
import hmac
import re

_OTHERS = re.compile(r"[^a-z0-9]+")
_SLUG = 24
_DIGEST = 10
_TOKEN = 32


def file_name(text: str) -> str:
    """A file name without suffix: what is ASCII of `text`, then 40 bits of its digest."""
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{_slug(text)}{digest[:_DIGEST]}"


def secret_name(text: str, key: bytes) -> str:
    """A file name without suffix that nobody can guess without `key`, the same every time."""
    token = hmac.new(key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
    return f"{_slug(text)}{token[:_TOKEN]}"


def _slug(text: str) -> str:
    slug = _OTHERS.sub("-", text.lower()).strip("-")[:_SLUG].strip("-")
    return f"{slug}-" if slug else ""
