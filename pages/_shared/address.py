"""What the address says stays said, whatever page one comes from.

Streamlit 1.67 takes the names of fields out of the address when the page changes, and tells the
browser so while it still is on the page that is left: the way back would lead to that page without
its inputs, and a link to a page with fields of the same name would lose what it says.
"""

from __future__ import annotations

from streamlit.runtime.state.query_params import QueryParams

_populate = QueryParams.populate_from_query_string


def keep() -> None:
    """Have page changes keep the address; names that the new page has no field for do nothing."""
    QueryParams.populate_from_query_string = _populate_all


def _populate_all(
    self: QueryParams, query_string: str, valid_script_hashes: set[str] | None = None
) -> None:
    _populate(self, query_string)
    if valid_script_hashes is None:
        return
    for binding in list(self._bindings_by_widget.values()):
        if binding.script_hash not in valid_script_hashes:
            self.unbind_widget(binding.widget_id)
