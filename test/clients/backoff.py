"""An example client that backs off correctly, with Python's standard library. Copy this client and adapt it. The client
slows down before the limit is used up, waits at least Retry-After plus a random time, and never retries a request that the
API may have carried out."""
import http.client
import random
import time
import urllib.error
import urllib.request
from email.utils import parsedate_to_datetime

ATTEMPTS_MAX = 5
WAIT_MAX = 60  # seconds; after a longer Retry-After (the day limit is used up, a ban), the caller gets the response
GAP_MAX = 5
IDEMPOTENT = {"GET", "HEAD", "OPTIONS", "PUT", "DELETE"}


class Client:
    def __init__(self, base_url, key):
        self.base_url, self.key = base_url, key
        self.next = 0.0  # the earliest time of the next request
        self.gap = 0.0  # the pause between two requests, in seconds

    def request(self, path, method="GET", body=None, headers=None):
        """Returns status, header fields and body. Raises OSError if there is no response."""
        for attempt in range(1, ATTEMPTS_MAX + 1):
            time.sleep(max(0.0, self.next - time.monotonic()))
            self.next = time.monotonic() + self.gap
            fields = {**(headers or {}), "Authorization": f"Bearer {self.key}"}
            try:
                response = self._send(urllib.request.Request(self.base_url + path, body, fields, method=method))
            except (OSError, http.client.HTTPException):
                if method not in IDEMPOTENT or attempt == ATTEMPTS_MAX:
                    raise
                status, retry_after = None, 0.0
            else:
                status, fields = response[:2]
                self._pace(fields)
                value = fields.get("Retry-After", "0")
                retry_after = float(value) if value.isdigit() else float("inf")
            # A 429 shows that the API did not carry out the request. After 502, 503, 504 or without a response, the API
            # may have carried out the request.
            repeatable = status == 429 or (status in (None, 502, 503, 504) and method in IDEMPOTENT)
            if not repeatable or attempt == ATTEMPTS_MAX or retry_after > WAIT_MAX:
                return response
            self.next = max(self.next, time.monotonic() + retry_after + random.random() * 0.5 * 2**attempt)

    def _send(self, request):
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return response.status, response.headers, response.read()
        except urllib.error.HTTPError as error:
            return error.code, error.headers, error.read()

    def _pace(self, fields):
        """Spreads the last fifth of a window's requests over the window's remaining time."""
        self.gap = 0.0
        if "X-RateLimit-Remaining" not in fields:
            return
        limit, remaining, reset = (int(fields[f"X-RateLimit-{name}"]) for name in ("Limit", "Remaining", "Reset"))
        now = parsedate_to_datetime(fields["Date"]).timestamp() if "Date" in fields else time.time()
        if remaining < limit / 5 and reset > now:  # on the server's clock
            self.gap = min((reset - now) / (remaining + 1), GAP_MAX if remaining > 0 else WAIT_MAX)
            self.next = max(self.next, time.monotonic() + self.gap)
