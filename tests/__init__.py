"""The tests; they import as workers do."""

from inspector.sandbox.deferring import defer_imports

defer_imports()
