"""Why are these texts similar?"""
