"""The tests; they import as workers do."""

from inspector.engine.starting.deferring import defer_imports

defer_imports()
