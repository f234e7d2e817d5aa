"""The configuration of a run, from flags, files, a resumed run and the device."""
