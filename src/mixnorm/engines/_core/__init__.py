"""Parts that several engines share: the corrective step, results, the stopping rule, backtracking.

Open ``corrective.py`` first; its parts are the curvature model, L-BFGS and orthants. No other room
may import this one.
"""
