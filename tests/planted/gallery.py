"""The gallery: every bug, in one list. ``docs/audit.md`` has it as a table."""

from tests.planted.accounting import ACCOUNTING
from tests.planted.classify import CLASSIFY
from tests.planted.gate import GATE
from tests.planted.learn import LEARN
from tests.planted.maps import MAPS
from tests.planted.mechanisms import MECHANISMS
from tests.planted.plant import Planted
from tests.planted.publish import PUBLISH
from tests.planted.queries import QUERIES
from tests.planted.sparse import SPARSE

GALLERY: tuple[Planted, ...] = (*MECHANISMS, *SPARSE, *ACCOUNTING, *GATE, *QUERIES, *PUBLISH, *MAPS, *LEARN, *CLASSIFY)
