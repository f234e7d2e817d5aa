"""Films of games: frames, GIF and MP4."""
