"""A run's configuration: the settings of all wings, from flags, files, a run and the device."""
