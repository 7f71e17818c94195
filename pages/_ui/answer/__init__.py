"""Answers on a page: the views of the rooms, with what only a page can do."""
