"""The agents by name, as evaluations play them and as the page asks them."""
