"""Layer importance by word errors from studies."""
