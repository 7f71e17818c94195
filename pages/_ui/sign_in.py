"""The one page that people see who are not signed in, and who is signed in."""

from __future__ import annotations

from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from inspector.serving.notice import DRAINING, notice
from inspector.serving.people import (
    browser_secret,
    identity_of,
    is_admin,
    is_admitted,
    name_of,
    owner_digest,
    providers,
    proxy_claims,
)
from inspector.serving.place import serves_others
from inspector.serving.settings import serving
from inspector.serving.storing.owners import Requester
from inspector.settings import settings
from inspector.text import literal, visible


def may_use() -> bool:
    """Whether the person who asks may use the server."""
    return serving().sign_in == "none" or is_admitted(_claims(), serving())


def offer() -> None:
    """Say why there is nothing to see, and offer the way in."""
    claims = _claims()
    if serving().sign_in == "proxy":
        st.markdown("You are not signed in: open this server by the address of its sign-in page.")
    elif claims.get("is_logged_in"):
        _turn_away(name_of(claims))
    else:
        _offer_sign_in()


def who() -> str:
    """Tells users apart who share this server's workers; empty where it serves one alone."""
    if not serves_others():
        return ""
    if serving().sign_in != "none":
        return identity_of(_claims())
    context = get_script_run_ctx()
    return browser_secret(st.context.cookies) or (context.session_id if context else "")


def asker() -> Requester:
    """Who asks for uploads."""
    name = who()
    if not name:
        return Requester()
    owner = owner_digest(name, serving())
    return Requester(owner, is_admin(_claims(), serving()) if serving().sign_in != "none" else False)


def sender() -> str:
    """Who owns what is uploaded; empty: everybody, as servers that share a store do not tell each other."""
    return "" if settings().store else asker().owner


def draw() -> None:
    """Say who is signed in, with a way out."""
    if serving().sign_in == "none":
        return
    st.text(f"Signed in as {visible(name_of(_claims()))}")  # markup would make links of addresses
    if serving().sign_in == "oidc":
        st.button("Sign out", icon=":material/logout:", on_click=st.logout)


def draw_notice() -> None:
    """Show what an administrator has everybody told, on top of the page."""
    shown = notice()
    if shown.draining:
        st.warning(DRAINING, icon=":material/build:")
    if shown.message:
        st.info(literal(shown.message), icon=":material/campaign:")


def administrator() -> str:
    """The name of the person who asks, if it is an administrator's; otherwise empty."""
    return name_of(_claims()) if asker().is_admin else ""


def _claims() -> dict[str, Any]:
    if serving().sign_in == "proxy":
        return proxy_claims(st.context.headers, serving())
    return dict(st.user.to_dict())


def _offer_sign_in() -> None:
    st.markdown("Sign in to use this server.")
    for provider in providers():
        label = f"Sign in with {literal(provider)}" if provider else "Sign in"
        st.button(
            label, type="primary", icon=":material/login:", on_click=st.login, args=(provider,) if provider else ()
        )


def _turn_away(name: str) -> None:
    st.text(
        f"You are signed in as {visible(name)}, but this account may not use this server: sign in with another one, "
        "or ask the administrator (INSPECTOR_PEOPLE)."
    )
    st.button("Sign out", icon=":material/logout:", on_click=st.logout)
