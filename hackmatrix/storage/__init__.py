"""Files that are whole or not there, and folders that know their own checksums."""
