"""What a run is asked: its configuration, from flags, files, a run it resumes and the device."""
