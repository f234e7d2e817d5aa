"""A run's configuration: the settings of all packages, from flags, files, a run and the device."""
