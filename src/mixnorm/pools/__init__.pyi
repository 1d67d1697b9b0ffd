from mixnorm.pools.boxes import Boxes as Boxes
from mixnorm.pools.columns import (
    Columns as Columns,
)
from mixnorm.pools.columns import (
    scale_name as scale_name,
)
from mixnorm.pools.columns import (
    working_dtype as working_dtype,
)
from mixnorm.pools.cost import Cost as Cost
from mixnorm.pools.curvature import Curvature as Curvature
from mixnorm.pools.curvature import capped_gain as capped_gain
from mixnorm.pools.kernels import KernelPool as KernelPool
from mixnorm.pools.patches.pool import Patches as Patches
from mixnorm.pools.pieces import Pieces as Pieces
from mixnorm.pools.products import Products as Products
from mixnorm.pools.products import check_numpy as check_numpy
from mixnorm.pools.scorers import ColumnScorer as ColumnScorer
from mixnorm.pools.scorers import PoolScorer as PoolScorer
from mixnorm.pools.stumps import Stumps as Stumps
from mixnorm.pools.union import Union as Union
