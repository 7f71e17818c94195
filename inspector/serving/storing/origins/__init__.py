"""Where uploads come from that a server is given: what it adds to the origins of the library."""

from inspector.serving.storing.origins.adapted import Adapted
from inspector.serving.storing.origins.incoming import Incoming
from inspector.serving.storing.origins.outline import Outline
from inspector.serving.storing.origins.snapshots import SnapshotArchive
from inspector.store.reference import ORIGINS

ORIGINS.update({each.word: each for each in (Adapted, Incoming, Outline, SnapshotArchive)})
