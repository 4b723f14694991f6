"""Provider tokens as APNs wants them, for load generators that make none."""

import base64
import json
import subprocess
import time


def provider_token(key, key_id, team_id):
    """A token that is valid now: ES256 over the two parts, by the signing key in the file `key`."""
    claims = {"iss": team_id, "iat": int(time.time())}
    signed = b".".join(encoded(json.dumps(part).encode()) for part in ({"alg": "ES256", "kid": key_id}, claims))
    der = subprocess.run(["openssl", "dgst", "-sha256", "-sign", key], input=signed, capture_output=True, check=True)
    return (signed + b"." + encoded(raw_signature(der.stdout))).decode()


def raw_signature(der):
    """The two integers of an ECDSA signature, 32 bytes each, out of their DER sequence."""
    raw, at = b"", 2
    for _ in range(2):
        length = der[at + 1]
        raw += der[at + 2:at + 2 + length].lstrip(b"\0").rjust(32, b"\0")
        at += 2 + length
    return raw


def encoded(part):
    return base64.urlsafe_b64encode(part).rstrip(b"=")
