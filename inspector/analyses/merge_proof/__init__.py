"""Was an adapter really merged into its base model?"""
