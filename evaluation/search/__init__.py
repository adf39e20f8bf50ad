"""How well questions find what they are about: a labelled set, its base, scores beside plain baselines."""
