"""The sections that a report may have, one entry each."""

from inspector.report.content import Section
from inspector.report.sections import (
    checks,
    classes,
    compare,
    heads,
    lens,
    masked_lm,
    overview,
    sharing,
    training,
    vocabulary,
)

SECTIONS: tuple[Section, ...] = (
    overview.SECTION,
    sharing.SECTION,
    classes.SECTION,
    vocabulary.EMBEDDINGS,
    vocabulary.PADDING,
    lens.SECTION,
    masked_lm.SECTION,
    heads.SECTION,
    training.SECTION,
    checks.SECTION,
    compare.SECTION,
)
BY_SLUG = {section.slug: section for section in SECTIONS}
