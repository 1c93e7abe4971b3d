"""How simulated people answer each kind of task, and what must come out."""

from __future__ import annotations

from rejoinder.annotate.rehearse.kinds.behaviour import Behaviour


def behaviour_of(name: str) -> type[Behaviour]:
    """Return how people answer a kind of task."""
    from rejoinder.annotate.rehearse.kinds.compare import CompareBehaviour
    from rejoinder.annotate.rehearse.kinds.comprehension import ComprehensionBehaviour
    from rejoinder.annotate.rehearse.kinds.diversity import DiversityBehaviour
    from rejoinder.annotate.rehearse.kinds.rate import RateBehaviour
    from rejoinder.annotate.rehearse.kinds.write import WriteBehaviour

    known: dict[str, type[Behaviour]] = {
        "rate": RateBehaviour,
        "write": WriteBehaviour,
        "compare": CompareBehaviour,
        "diversity": DiversityBehaviour,
        "comprehension": ComprehensionBehaviour,
    }
    return known[name]
