"""What stands between the network and the pages: who may pass, and what each answer says.

Streamlit's own server does the rest. `app.py` puts these parts before it, in this order: headers,
door, talk. Everything here is decided from the request's head alone, and nothing reads a body.
"""

import inspector.serving.storing.origins  # noqa: F401  # wherever a server's code runs, a reference may name an upload
