def write_page(path, entrants, seed): path.write_text("x")
