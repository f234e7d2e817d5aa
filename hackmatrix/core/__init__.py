"""The base of all else: errors, options, files, devices, compiled programs."""
