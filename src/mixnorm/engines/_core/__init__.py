"""What several engines share: the corrective step, its curvature model, L-BFGS, orthants.

Open ``corrective.py`` first. No other room may import this one.
"""
