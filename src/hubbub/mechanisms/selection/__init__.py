"""Selection: one of many candidates, a quantile, an extreme or a price."""
