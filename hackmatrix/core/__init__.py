"""What all else stands on: errors, options, files, devices, compiled programs, charts."""
