"""Films of games: frames as pixels, GIF and MP4."""
