# SPDX-License-Identifier: Apache-2.0
"""Where a secret must never be: in a site's files, in its log, and in what it answers."""

import base64
import json


def forms(secret):
    """How bytes could be written."""
    return secret, secret.hex().encode(), secret.hex().upper().encode(), base64.b64encode(secret).rstrip(b"=")


def assert_absent(test, site, secrets):
    """Call it while the flow with these secrets is live."""
    test.assertTrue(secrets)
    flows = site.flows()
    test.assertTrue(flows)
    places = {"the log": site.process.log().encode(), "/v1/status": json.dumps(site.status()).encode(),
              "/v1/flows": json.dumps(flows).encode(), "/metrics": site.get("/metrics").encode()}
    for flow in flows:
        places[f"why {flow['id']}"] = site.longhaul("why", flow["id"]).encode()
    for file in filter(lambda path: path.is_file(), site.folder.rglob("*")):
        places[str(file)] = file.read_bytes()
    for name, secret in secrets.items():
        test.assertGreaterEqual(len(secret), 16, f"{name}: fewer bytes may be there by chance")
        for place, content in places.items():
            test.assertFalse(any(form in content for form in forms(secret)), f"{name} is in {place} of {site.name}")
