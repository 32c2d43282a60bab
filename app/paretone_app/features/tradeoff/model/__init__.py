"""The trade-off view without Qt: points, axes, what is shown of them, and how it is said."""
