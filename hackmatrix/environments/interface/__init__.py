"""The types that all packages share: environments, metrics, reports and spaces."""
