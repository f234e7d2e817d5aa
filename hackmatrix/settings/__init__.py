"""What a run is asked: its configuration, from flags, files, a run it continues and the device."""
