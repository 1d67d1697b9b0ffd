from mixnorm import (
    advice as advice,
)
from mixnorm import (
    bounds as bounds,
)
from mixnorm import (
    datasets as datasets,
)
from mixnorm import (
    display as display,
)
from mixnorm import (
    engines as engines,
)
from mixnorm import (
    estimators as estimators,
)
from mixnorm import (
    exceptions as exceptions,
)
from mixnorm import (
    kernels as kernels,
)
from mixnorm import (
    losses as losses,
)
from mixnorm import (
    norms as norms,
)
from mixnorm import (
    pools as pools,
)
from mixnorm import (
    selection as selection,
)
from mixnorm import (
    storage as storage,
)
from mixnorm import (
    tables as tables,
)
from mixnorm import (
    testing as testing,
)
from mixnorm._version import __version__ as __version__
from mixnorm.advice import advise as advise
from mixnorm.display import ShareBoostPathDisplay as ShareBoostPathDisplay
from mixnorm.engines.greedy import GreedyOptions as GreedyOptions
from mixnorm.estimators import *
from mixnorm.storage import load as load
from mixnorm.storage import save as save
